/** OAuth clients, and when a renewal failed last. */
export const MIGRATION_2 = `
CREATE TABLE oauth_clients (
  id TEXT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  provider_name TEXT NOT NULL,
  client_id TEXT NOT NULL,
  -- Sealed; NULL for a public client.
  client_secret BLOB,
  updated_at INTEGER NOT NULL,
  UNIQUE (application_id, provider_name)
) STRICT;

ALTER TABLE connections ADD COLUMN last_failed_at INTEGER;
`;
