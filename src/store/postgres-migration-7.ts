/** As SQLite has it after its ninth migration; by the database's clock, as the lease. */
export const POSTGRES_MIGRATION_7 = `
ALTER TABLE connections ADD COLUMN unanswered_since BIGINT;
`;
