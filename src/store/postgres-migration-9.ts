/** As SQLite has it after its eleventh migration. */
export const POSTGRES_MIGRATION_9 = `
CREATE INDEX connections_failing ON connections (state) WHERE fail_count > 0;
`;
