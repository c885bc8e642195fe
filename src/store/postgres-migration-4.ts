/**
 * Records of calls and debug captures, as SQLite has them in its sixth migration and in the file of calls. Times are
 * milliseconds since the epoch.
 */
export const POSTGRES_MIGRATION_4 = `
ALTER TABLE applications ADD COLUMN capture_until BIGINT NOT NULL DEFAULT 0;

CREATE TABLE call_captures (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  application_id TEXT COLLATE "C" NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  capture_until BIGINT NOT NULL,
  content BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX call_captures_by_application ON call_captures (application_id, capture_until);
CREATE INDEX call_captures_by_age ON call_captures (created_at);

-- Whoever writes blocks takes its numbers here, and holds the row until they can be seen: so they are seen in order.
CREATE TABLE call_sequence (
  id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
  last BIGINT NOT NULL
);
INSERT INTO call_sequence (id, last) VALUES (1, 0);

CREATE TABLE call_blocks (
  sequence BIGINT NOT NULL PRIMARY KEY,
  application_id TEXT COLLATE "C" NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  count BIGINT NOT NULL,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  calls TEXT COLLATE "C" NOT NULL
);
CREATE INDEX call_blocks_by_application ON call_blocks (application_id, sequence);
CREATE INDEX call_blocks_by_time ON call_blocks (last_at, first_at);
`;
