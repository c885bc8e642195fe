/**
 * Applications, connections and key checks. Times are milliseconds since the epoch. Text compares byte for byte
 * (BINARY, SQLite's default). Sealed columns are in no index and no CHECK: SQLite quotes those in error text.
 */
export const MIGRATION_1 = `
CREATE TABLE applications (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  public_key TEXT NOT NULL UNIQUE,
  -- Sealed SHA-256 of the private key.
  private_key_hash BLOB NOT NULL,
  caller_auth TEXT NOT NULL CHECK (caller_auth IN ('PUBLIC_KEY', 'SIGNED_USER', 'PRIVATE_KEY')),
  -- JSON arrays of text.
  allowed_origins TEXT NOT NULL,
  allowed_addresses TEXT NOT NULL,
  -- 0 is no limit.
  calls_per_minute INTEGER NOT NULL,
  connection_calls_per_minute INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('ACTIVE', 'DISABLED')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE connections (
  id TEXT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL,
  provider_name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('ACTIVE', 'REAUTHORIZATION_REQUIRED')),
  state_reason TEXT,
  -- Sealed tokens; the id of the key is inside.
  access_token BLOB NOT NULL,
  refresh_token BLOB,
  -- Kept for a provider that never saw the rotation we stored, or the other way round.
  previous_refresh_token BLOB,
  id_token BLOB,
  token_type TEXT NOT NULL,
  scope TEXT NOT NULL,
  -- JSON object of text.
  origin_parameters TEXT NOT NULL,
  obtained_at INTEGER NOT NULL,
  expires_at INTEGER,
  -- Grows with every change of what the row says; sealing the same tokens under another key is no such change.
  version INTEGER NOT NULL,
  -- Who renews the token now, and until when nobody else may.
  lease_owner TEXT,
  lease_until INTEGER,
  fail_count INTEGER NOT NULL DEFAULT 0,
  next_try_at INTEGER,
  last_error_class TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (application_id, user_id, provider_name)
) STRICT;

-- A known text sealed under each key that values of this store may be sealed under.
CREATE TABLE key_checks (
  key_id TEXT NOT NULL PRIMARY KEY,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
`;
