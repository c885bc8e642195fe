/**
 * The audit trail, as SQLite has it after its fifth migration. Nothing but the lack of a statement keeps its records
 * from being changed: triggers are not the same in all databases that speak like PostgreSQL.
 */
export const POSTGRES_MIGRATION_3 = `
CREATE TABLE audit_records (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  created_at BIGINT NOT NULL,
  actor BYTEA NOT NULL,
  method TEXT COLLATE "C" NOT NULL,
  resource TEXT COLLATE "C" NOT NULL,
  public_key BYTEA NOT NULL,
  changed_fields TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL CHECK (outcome IN ('DONE', 'REFUSED'))
);
CREATE INDEX audit_records_by_application ON audit_records (public_key, id);
`;
