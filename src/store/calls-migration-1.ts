/** Records of calls in SQLite, in a file of their own. Times are milliseconds since the epoch. */
export const CALLS_MIGRATION_1 = `
CREATE TABLE call_blocks (
  -- Never given twice, so that whoever reads on behind a block misses none.
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  application_id TEXT NOT NULL,
  -- How many calls of the application were written before.
  position INTEGER NOT NULL,
  count INTEGER NOT NULL,
  -- When the first and the last of them began.
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  -- JSON.
  calls TEXT NOT NULL
) STRICT;
-- Of a file that is begun anew behind those of the one before, too: they go on from the time, in microseconds.
INSERT INTO sqlite_sequence (name, seq) VALUES ('call_blocks', unixepoch() * 1000000);
CREATE INDEX call_blocks_by_application ON call_blocks (application_id, sequence);
CREATE INDEX call_blocks_by_time ON call_blocks (last_at, first_at);
`;
