/** As SQLite has them after its tenth migration. */
export const POSTGRES_MIGRATION_8 = `
ALTER TABLE connections ADD COLUMN trouble TEXT COLLATE "C";
ALTER TABLE connections ADD COLUMN refusal TEXT COLLATE "C";
ALTER TABLE connections ADD COLUMN refused_at BIGINT;
ALTER TABLE connections ADD COLUMN refreshed_at BIGINT;
CREATE INDEX connections_refused ON connections (provider_name, refusal, refused_at) WHERE refusal IS NOT NULL;
CREATE INDEX connections_refreshed ON connections (application_id, provider_name, refreshed_at)
  WHERE refreshed_at IS NOT NULL;

ALTER TABLE oauth_clients ADD COLUMN refused_since BIGINT;
`;
