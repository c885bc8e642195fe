/** Debug captures: headers and bodies of some calls of an application. Times are milliseconds since the epoch. */
export const MIGRATION_5 = `
-- Until when its calls are captured; 0 for never.
ALTER TABLE applications ADD COLUMN capture_until INTEGER NOT NULL DEFAULT 0;

CREATE TABLE call_captures (
  -- The call's.
  id TEXT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  -- Of the application when the call came in: tells its captures apart.
  capture_until INTEGER NOT NULL,
  -- Sealed JSON.
  content BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX call_captures_by_application ON call_captures (application_id, capture_until);
CREATE INDEX call_captures_by_age ON call_captures (created_at);
`;
