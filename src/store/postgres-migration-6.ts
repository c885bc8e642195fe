/** As SQLite has them after its eighth migration. */
export const POSTGRES_MIGRATION_6 = `
CREATE TABLE application_origins (
  origin TEXT COLLATE "C" NOT NULL,
  application_id TEXT COLLATE "C" NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  PRIMARY KEY (origin, application_id)
);
CREATE INDEX application_origins_by_application ON application_origins (application_id);

INSERT INTO application_origins (origin, application_id)
  SELECT DISTINCT listed.origin, applications.id
  FROM applications, jsonb_array_elements_text(allowed_origins::jsonb) AS listed (origin);
`;
