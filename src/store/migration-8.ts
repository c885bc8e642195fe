/** Browser origins by themselves: a preflight names no application, and must not read all of them. */
export const MIGRATION_8 = `
CREATE TABLE application_origins (
  origin TEXT NOT NULL,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  PRIMARY KEY (origin, application_id)
) STRICT;
CREATE INDEX application_origins_by_application ON application_origins (application_id);

INSERT OR IGNORE INTO application_origins (origin, application_id)
  SELECT listed.value, applications.id FROM applications, json_each(applications.allowed_origins) AS listed;
`;
