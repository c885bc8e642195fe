/**
 * The audit trail. Ids are UUIDs of version 7, so that their order is that of time. Records outlive what they tell of:
 * they refer to nothing.
 */
export const MIGRATION_5 = `
CREATE TABLE audit_records (
  id TEXT NOT NULL PRIMARY KEY,
  created_at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  method TEXT NOT NULL,
  resource TEXT NOT NULL,
  -- Of the application that it is about; empty for none.
  public_key TEXT NOT NULL,
  -- JSON array of text.
  changed_fields TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('DONE', 'REFUSED'))
) STRICT;
CREATE INDEX audit_records_by_application ON audit_records (public_key, id);

CREATE TRIGGER audit_records_stay BEFORE UPDATE ON audit_records BEGIN
  SELECT raise(ABORT, 'audit records are never changed');
END;
CREATE TRIGGER audit_records_remain BEFORE DELETE ON audit_records BEGIN
  SELECT raise(ABORT, 'audit records are never deleted');
END;
`;
