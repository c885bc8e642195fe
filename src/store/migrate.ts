import type Database from "better-sqlite3";
import { StoreOpenError } from "./store-open-error.js";

/**
 * Applications, connections and key checks. Times are milliseconds since the epoch. Text compares byte for byte
 * (BINARY, SQLite's default). Sealed columns are in no index and no CHECK: SQLite quotes those in error text.
 */
const MIGRATION_1 = `
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

/** OAuth clients, and when a renewal failed last. */
const MIGRATION_2 = `
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

/** Making connections in a browser, and telling applications of them. Times are milliseconds since the epoch. */
const MIGRATION_3 = `
-- JSON array of text: where a browser may be sent back to.
ALTER TABLE applications ADD COLUMN allowed_redirect_uris TEXT NOT NULL DEFAULT '[]';

-- Scope to ask for, as the provider writes it; and parameters of templated origins that the client is bound to.
ALTER TABLE oauth_clients ADD COLUMN scope TEXT NOT NULL DEFAULT '';
ALTER TABLE oauth_clients ADD COLUMN origin_parameters TEXT NOT NULL DEFAULT '{}';

-- Short-lived secrets of browsers: connect links, sessions of the connect page, states of authorization requests.
CREATE TABLE tickets (
  -- Hex SHA-256 of the secret, which is kept nowhere.
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('LINK', 'SESSION', 'STATE')),
  -- Hex SHA-256 of the cookie of the browser it is bound to; empty for none.
  browser TEXT NOT NULL,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL,
  -- Sealed JSON.
  payload BLOB NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tickets_by_end ON tickets (expires_at);
CREATE INDEX tickets_by_application ON tickets (application_id, kind, expires_at);

-- Where an application is told of its connections.
CREATE TABLE webhook_endpoints (
  -- The application's.
  id TEXT NOT NULL PRIMARY KEY REFERENCES applications (id) ON DELETE CASCADE,
  uri TEXT NOT NULL,
  -- Sealed key of the signatures.
  secret BLOB NOT NULL,
  -- When the next event may go there: behind the delivery that is under way, or the pause after a failed one.
  free_at INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL
) STRICT;

-- What it was not told yet. Rows are written in the transaction of the change that they tell of.
CREATE TABLE webhook_events (
  id TEXT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  -- JSON, as it is sent.
  payload TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_try_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX webhook_events_due ON webhook_events (next_try_at);
CREATE INDEX webhook_events_by_application ON webhook_events (application_id, next_try_at);

-- Leases that their owners left behind.
CREATE INDEX connections_leased ON connections (lease_until) WHERE lease_until IS NOT NULL;
`;

/** Connections are counted by their state, as a metric. */
const MIGRATION_4 = `
CREATE INDEX connections_by_state ON connections (state);
`;

/**
 * The audit trail. Ids are UUIDs of version 7, so that their order is that of time. Records outlive what they tell of:
 * they refer to nothing.
 */
const MIGRATION_5 = `
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

/** Debug captures: headers and bodies of some calls of an application. Times are milliseconds since the epoch. */
const MIGRATION_6 = `
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

/**
 * Connections that end with their access token, by when they do. No index holds a sealed value; this one only asks
 * whether there is one.
 */
const MIGRATION_7 = `
CREATE INDEX connections_unrenewable ON connections (expires_at)
  WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at IS NOT NULL;
`;

/** Browser origins by themselves: a preflight names no application, and must not read all of them. */
const MIGRATION_8 = `
CREATE TABLE application_origins (
  origin TEXT NOT NULL,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  PRIMARY KEY (origin, application_id)
) STRICT;
CREATE INDEX application_origins_by_application ON application_origins (application_id);

INSERT OR IGNORE INTO application_origins (origin, application_id)
  SELECT listed.value, applications.id FROM applications, json_each(applications.allowed_origins) AS listed;
`;

/** Since when a refresh token may be spent whose answer is not stored: it outlives the lease that it was sent under. */
const MIGRATION_9 = `
ALTER TABLE connections ADD COLUMN unanswered_since INTEGER;
`;

/**
 * What is known of tokens that are refused, or cannot be refreshed, and what shows whether that is their own trouble or
 * everybody's: when each connection was refreshed last, and which of them are refused in the same words.
 */
const MIGRATION_10 = `
-- JSON: since when, and what was said (oauth/verdict.ts).
ALTER TABLE connections ADD COLUMN trouble TEXT;
-- A fingerprint of the words of the last refusal.
ALTER TABLE connections ADD COLUMN refusal TEXT;
ALTER TABLE connections ADD COLUMN refused_at INTEGER;
ALTER TABLE connections ADD COLUMN refreshed_at INTEGER;
CREATE INDEX connections_refused ON connections (provider_name, refusal, refused_at) WHERE refusal IS NOT NULL;
CREATE INDEX connections_refreshed ON connections (application_id, provider_name, refreshed_at)
  WHERE refreshed_at IS NOT NULL;

-- Since when the provider refuses the client itself.
ALTER TABLE oauth_clients ADD COLUMN refused_since INTEGER;
`;

/** For counting the connections whose refresh is failing: hardly any entry on most days. */
const MIGRATION_11 = `
CREATE INDEX connections_failing ON connections (state) WHERE fail_count > 0;
`;

/** Tells a store from others, wherever it is moved to. */
const MIGRATION_12 = `
CREATE TABLE store_identity (id TEXT NOT NULL PRIMARY KEY) STRICT;
INSERT INTO store_identity (id) VALUES (lower(hex(randomblob(16))));
`;

/** In order; number n brings a database from version n-1 to n. One that was released is never changed. */
export const MIGRATIONS: readonly string[] = [
  MIGRATION_1,
  MIGRATION_2,
  MIGRATION_3,
  MIGRATION_4,
  MIGRATION_5,
  MIGRATION_6,
  MIGRATION_7,
  MIGRATION_8,
  MIGRATION_9,
  MIGRATION_10,
  MIGRATION_11,
  MIGRATION_12,
];

/**
 * Applies the migrations that a database has not seen. All of them or none: they run in one write transaction, which
 * also keeps a second process from applying them at the same time.
 */
export function migrate(db: Database.Database, file: string, migrations = MIGRATIONS): void {
  if (versionOf(db) === migrations.length) return;
  db.transaction(() => {
    // Read again: another process may have migrated while this one waited for the lock.
    assertKnownVersion(db, file, migrations);
    for (const sql of migrations.slice(versionOf(db))) db.exec(sql);
    db.pragma(`user_version = ${migrations.length}`);
  }).immediate();
}

/** Throws StoreOpenError when the database is from a newer version, or not the relay's. Writes nothing. */
export function assertKnownVersion(db: Database.Database, file: string, migrations = MIGRATIONS): void {
  // Both in one transaction, so that they are of one moment: another process may be migrating.
  const { version, isEmpty } = db.transaction(() => ({ version: versionOf(db), isEmpty: !hasTables(db) }))();
  if (version < 0 || version > migrations.length) {
    throw new StoreOpenError(
      file,
      `has schema version ${version}, this relay knows ${migrations.length}; run the newer relay, or restore an older backup`,
    );
  }
  if (version === 0 && !isEmpty) {
    throw new StoreOpenError(file, "belongs to another program: it has tables but no schema version of the relay");
  }
}

/** Whether the schema is this version's. */
export function isCurrent(db: Database.Database): boolean {
  return versionOf(db) === MIGRATIONS.length;
}

function versionOf(db: Database.Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}

function hasTables(db: Database.Database): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() !== undefined;
}
