/** As SQLite has it after its seventh migration. */
export const POSTGRES_MIGRATION_5 = `
CREATE INDEX connections_unrenewable ON connections (expires_at)
  WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at IS NOT NULL;
`;
