import { createHash } from "node:crypto";
import { ENDED_SESSIONS_TABLE } from "./audit-records.js";
import { FIGURES_TABLE, PAIR_FIGURES } from "./call-figures.js";
import { StoreOpenError } from "./database.js";

/** One step from a version of the schema to the next. */
interface Migration {
  /**
   * SQL for both databases, with types that are translated for each: `KEY` is text from outside, `BYTEA` bytes,
   * `BIGINT` a number, and `PLACE` a number in order of writing.
   */
  readonly both: string;
  readonly sqlite: string;
  readonly postgres: string;
}

/**
 * Times are milliseconds since the epoch. Text compares byte for byte (BINARY, `COLLATE "C"`). Sealed columns are in no
 * index or CHECK, since databases quote their values in error messages.
 */
const TABLES = `
-- Identifies this store, also after it was moved.
CREATE TABLE store_identity (
  id TEXT NOT NULL PRIMARY KEY
);

-- One row per encryption key in use, with a known text sealed under it, to check a key.
CREATE TABLE key_checks (
  key_id TEXT NOT NULL PRIMARY KEY,
  sealed BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE applications (
  id TEXT NOT NULL PRIMARY KEY,
  name KEY NOT NULL,
  public_key KEY NOT NULL UNIQUE,
  -- SHA-256 of the private key, sealed.
  private_key_hash BYTEA NOT NULL,
  caller_auth TEXT NOT NULL CHECK (caller_auth IN ('PUBLIC_KEY', 'SIGNED_USER', 'PRIVATE_KEY')),
  -- JSON arrays of strings.
  allowed_origins TEXT NOT NULL,
  allowed_addresses TEXT NOT NULL,
  -- Where the connect page may redirect a browser.
  allowed_redirect_uris TEXT NOT NULL DEFAULT '[]',
  -- 0: no limit.
  calls_per_minute BIGINT NOT NULL,
  connection_calls_per_minute BIGINT NOT NULL,
  -- JSON object: provider name -> rules, one of which a call must match.
  call_rules TEXT NOT NULL DEFAULT '{}',
  -- Longest lifetime of a call token; 0: the longest that the relay allows.
  max_call_token_seconds BIGINT NOT NULL DEFAULT 0,
  -- Color on the connect page, #rrggbb; empty: the relay's own.
  accent_color TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL CHECK (state IN ('ACTIVE', 'DISABLED')),
  -- When debug capture ends; 0: off.
  capture_until BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- Allowed browser origins again, indexed: a CORS preflight names no application.
CREATE TABLE application_origins (
  origin TEXT NOT NULL,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  PRIMARY KEY (origin, application_id)
);
CREATE INDEX application_origins_by_application ON application_origins (application_id);

CREATE TABLE oauth_clients (
  id TEXT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  provider_name TEXT NOT NULL,
  client_id KEY NOT NULL,
  -- Sealed; NULL: a public client.
  client_secret BYTEA,
  -- The scope to request, in the provider's notation.
  scope KEY NOT NULL,
  -- JSON object of strings: values that the client fixes for parameters of templated origins.
  origin_parameters TEXT NOT NULL DEFAULT '{}',
  updated_at BIGINT NOT NULL,
  -- When the provider began to refuse the client itself.
  refused_since BIGINT,
  UNIQUE (application_id, provider_name)
);

-- Refused clients; usually there are none.
CREATE INDEX oauth_clients_refused ON oauth_clients (refused_since) WHERE refused_since IS NOT NULL;

CREATE TABLE connections (
  id TEXT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  user_id KEY NOT NULL,
  provider_name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('ACTIVE', 'REAUTHORIZATION_REQUIRED')),
  state_reason TEXT,
  -- Sealed tokens; each includes the id of its key.
  access_token BYTEA NOT NULL,
  refresh_token BYTEA,
  -- A refresh token that arrived too late to become the current one; the provider may know only this one.
  previous_refresh_token BYTEA,
  id_token BYTEA,
  token_type KEY NOT NULL,
  scope KEY NOT NULL,
  -- JSON object of strings.
  origin_parameters TEXT NOT NULL,
  obtained_at BIGINT NOT NULL,
  expires_at BIGINT,
  -- The last refresh; NULL: never.
  refreshed_at BIGINT,
  -- Incremented with every change of content. Sealing the same tokens under another key is not one.
  version BIGINT NOT NULL,
  -- Who is refreshing the token, and when that lease ends; in the store's time, like next_try_at.
  lease_owner TEXT,
  lease_until BIGINT,
  -- When a refresh token was sent whose answer is not stored yet: it may be spent. Kept after the lease has ended.
  unanswered_since BIGINT,
  fail_count BIGINT NOT NULL DEFAULT 0,
  last_failed_at BIGINT,
  next_try_at BIGINT,
  last_error_class TEXT,
  -- JSON: since when the token has been refused or its refresh has failed, and the repeated refusal
  -- (oauth/verdict.ts).
  trouble TEXT,
  -- Fingerprint of the error text of the last refusal, to find other connections refused with the same text.
  refusal TEXT,
  refused_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (application_id, user_id, provider_name)
);
-- Leases: there are few. In the order in which abandoned ones are looked for.
CREATE INDEX connections_leased ON connections (id) WHERE lease_until IS NOT NULL;
-- For counting connections by state, and those whose refresh fails (usually none).
CREATE INDEX connections_by_state ON connections (state);
CREATE INDEX connections_failing ON connections (state) WHERE fail_count > 0;
-- Connections without a refresh token, by when they end. The condition does not read the sealed value.
CREATE INDEX connections_unrefreshable ON connections (expires_at)
  WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at IS NOT NULL;
CREATE INDEX connections_refused ON connections (provider_name, refusal, refused_at) WHERE refusal IS NOT NULL;
-- For finding a user in all applications.
CREATE INDEX connections_by_user ON connections (user_id, application_id, provider_name);
CREATE INDEX connections_refreshed ON connections (application_id, provider_name, refreshed_at)
  WHERE refreshed_at IS NOT NULL;

-- Short-lived secrets that browsers hold: connect links, connect sessions, states of authorization requests.
CREATE TABLE tickets (
  -- Hex SHA-256 of the secret, which itself is not stored.
  id TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('LINK', 'SESSION', 'STATE')),
  -- Hex SHA-256 of the cookie of the browser that it is bound to; empty: not bound.
  browser TEXT NOT NULL,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  user_id KEY NOT NULL,
  -- Sealed JSON.
  payload BYTEA NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX tickets_by_end ON tickets (expires_at);
CREATE INDEX tickets_by_application ON tickets (application_id, kind, expires_at);

-- Where an application's webhook events are sent.
CREATE TABLE webhook_endpoints (
  -- The application's id.
  id TEXT NOT NULL PRIMARY KEY REFERENCES applications (id) ON DELETE CASCADE,
  uri KEY NOT NULL,
  -- The signing key, sealed.
  secret BYTEA NOT NULL,
  -- When the next event may be sent: after the delivery in progress, or the pause after a failed one.
  free_at BIGINT NOT NULL DEFAULT 0,
  updated_at BIGINT NOT NULL
);

-- Events not delivered yet, written in the transaction of the change that they report.
CREATE TABLE webhook_events (
  -- In order of writing.
  place PLACE,
  id TEXT NOT NULL UNIQUE,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  -- JSON, exactly as sent.
  payload TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_try_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX webhook_events_due ON webhook_events (next_try_at);
CREATE INDEX webhook_events_by_application ON webhook_events (application_id, next_try_at);

-- The delivery history: one row per event, for some days; only the last ones of all applications.
CREATE TABLE webhook_deliveries (
  -- In order of the first attempt.
  place PLACE,
  -- The event's id.
  id TEXT NOT NULL UNIQUE,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  type TEXT NOT NULL,
  -- The user of the connection; empty: a test event.
  user_id KEY NOT NULL,
  provider_name TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('DELIVERED', 'RETRYING', 'GIVEN_UP')),
  attempts BIGINT NOT NULL,
  -- HTTP status of the last response; 0: there was none.
  status BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  attempted_at BIGINT NOT NULL
);
CREATE INDEX webhook_deliveries_by_application ON webhook_deliveries (application_id, place);
CREATE INDEX webhook_deliveries_by_user ON webhook_deliveries (application_id, user_id, place);
CREATE INDEX webhook_deliveries_given_up ON webhook_deliveries (attempted_at) WHERE outcome = 'GIVEN_UP';
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (attempted_at);

-- Ids are UUIDs of version 7, so that they sort by time. There are no foreign keys: records are kept when what they
-- report on is deleted.
CREATE TABLE audit_records (
  id TEXT NOT NULL PRIMARY KEY,
  created_at BIGINT NOT NULL,
  actor KEY NOT NULL,
  method TEXT NOT NULL,
  resource TEXT NOT NULL,
  -- The application concerned; empty: none.
  public_key KEY NOT NULL,
  -- JSON array of strings.
  changed_fields TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('DONE', 'REFUSED'))
);
CREATE INDEX audit_records_by_application ON audit_records (public_key, id);

-- Debug captures: headers and bodies of some calls of an application.
CREATE TABLE call_captures (
  -- The call's id.
  id TEXT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  -- The application's capture_until when the call was made: identifies one period of capturing.
  capture_until BIGINT NOT NULL,
  -- Sealed JSON.
  content BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX call_captures_by_application ON call_captures (application_id, capture_until);
CREATE INDEX call_captures_by_age ON call_captures (created_at);
`;

const SQLITE_ONLY = `
INSERT INTO store_identity (id) VALUES (lower(hex(randomblob(16))));

CREATE TRIGGER audit_records_stay BEFORE UPDATE ON audit_records BEGIN
  SELECT raise(ABORT, 'audit records are never changed');
END;
CREATE TRIGGER audit_records_remain BEFORE DELETE ON audit_records BEGIN
  SELECT raise(ABORT, 'audit records are never deleted');
END;
`;

/**
 * Here, only the absence of such a statement keeps audit records from being changed: triggers differ between databases
 * that are compatible with PostgreSQL. In SQLite, call blocks are in a separate file (calls-file.ts).
 */
const POSTGRES_ONLY = `
INSERT INTO store_identity (id) VALUES (replace(gen_random_uuid()::text, '-', ''));

-- Each writer of blocks takes its numbers here and locks the row until it commits, so that blocks become visible in
-- order.
CREATE TABLE call_sequence (
  id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
  last BIGINT NOT NULL
);
INSERT INTO call_sequence (id, last) VALUES (1, 0);

CREATE TABLE call_blocks (
  sequence BIGINT NOT NULL PRIMARY KEY,
  application_id TEXT NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  count BIGINT NOT NULL,
  first_at BIGINT NOT NULL,
  last_at BIGINT NOT NULL,
  calls TEXT NOT NULL
);
CREATE INDEX call_blocks_by_application ON call_blocks (application_id, sequence);
CREATE INDEX call_blocks_by_time ON call_blocks (last_at, first_at);
CREATE INDEX webhook_deliveries_by_place ON webhook_deliveries (place);
`;

/** PNG, JPEG or WebP; empty for none. */
const ICON = "ALTER TABLE applications ADD COLUMN icon";

/** In order: number n brings a database from version n-1 to n. Never change a migration, except for its comments. */
const MIGRATIONS: readonly Migration[] = [
  { both: TABLES, sqlite: SQLITE_ONLY, postgres: POSTGRES_ONLY + FIGURES_TABLE },
  {
    // The refresh history (connection-row.ts), and ended sessions.
    both: `ALTER TABLE connections ADD COLUMN\n  refreshes TEXT;\n${ENDED_SESSIONS_TABLE}`,
    sqlite: `${ICON} BLOB NOT NULL DEFAULT x''`,
    postgres: `${ICON} BYTEA NOT NULL DEFAULT '';\n${PAIR_FIGURES}`,
  },
];

/** All migrations in SQLite's dialect. */
export const SQLITE_MIGRATIONS: readonly string[] = MIGRATIONS.map(({ both, sqlite }) => {
  const types = { BIGINT: "INTEGER", BYTEA: "BLOB", KEY: "TEXT", PLACE: "INTEGER PRIMARY KEY", TEXT: "TEXT" };
  return withTypes(both, types).replaceAll("\n);", "\n) STRICT;") + sqlite;
});

/** All migrations in PostgreSQL's dialect. */
export const POSTGRES_MIGRATIONS: readonly string[] = MIGRATIONS.map(({ both, postgres }) => {
  const types = {
    BIGINT: "BIGINT",
    BYTEA: "BYTEA",
    KEY: "BYTEA",
    PLACE: "BIGINT GENERATED BY DEFAULT AS IDENTITY",
    TEXT: 'TEXT COLLATE "C"',
  };
  return withTypes(both, types) + withTypes(postgres, types);
});

/** Translates column types. The SQL has one column per line, with its type after the name. */
function withTypes(sql: string, types: Readonly<Record<string, string>>): string {
  return sql.replaceAll(/^( +[a-z_]+) ([A-Z]+)/gm, (line, name: string, type: string) => {
    const translated = types[type];
    return translated === undefined ? line : `${name} ${translated}`;
  });
}

/** SQL without comments and with normalized white space, for comparison. */
export function plainSql(sql: string): string {
  return sql.replaceAll(/--.*$/gm, "").replaceAll(/\s+/g, " ").trim();
}

/** A digest that identifies a list of migrations. */
export function digestOf(migrations: readonly string[]): string {
  return createHash("sha256").update(migrations.map(plainSql).join()).digest("hex");
}

/** Throws StoreOpenError for a version of the schema that this relay does not know. */
export function requireKnownVersion(version: number, database: string, { length: known }: readonly string[]): void {
  if (version >= 0 && version <= known) return;
  throw new StoreOpenError(
    database,
    `has schema version ${version}, but this relay knows only versions up to ${known}; run the newer relay, or restore an older backup`,
  );
}

/** The error for a database whose schema is not what the migrations to its version create. */
export function otherSchema(database: string, version: number, cause?: Error): StoreOpenError {
  return new StoreOpenError(
    database,
    `has a schema that is not version ${version} of this relay: another build created it, or it was changed by hand; run the relay that created it, or restore a backup of this version`,
    { cause },
  );
}
