/**
 * The schema in PostgreSQL, as SQLite has it after its first three migrations. Times are milliseconds since the epoch.
 * Text of ours compares byte for byte (`COLLATE "C"`); text of others is kept as UTF-8 bytes, since PostgreSQL's text
 * holds no NUL and a user's id may (threats T02): `convert_from(user_id, 'UTF8')` shows it. Sealed columns are in no
 * index and no CHECK: PostgreSQL quotes those in error text.
 */
export const POSTGRES_MIGRATION_1 = `
CREATE TABLE applications (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  name BYTEA NOT NULL,
  public_key BYTEA NOT NULL UNIQUE,
  private_key_hash BYTEA NOT NULL,
  caller_auth TEXT COLLATE "C" NOT NULL CHECK (caller_auth IN ('PUBLIC_KEY', 'SIGNED_USER', 'PRIVATE_KEY')),
  allowed_origins TEXT COLLATE "C" NOT NULL,
  allowed_addresses TEXT COLLATE "C" NOT NULL,
  allowed_redirect_uris TEXT COLLATE "C" NOT NULL,
  calls_per_minute BIGINT NOT NULL,
  connection_calls_per_minute BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('ACTIVE', 'DISABLED')),
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE connections (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  application_id TEXT COLLATE "C" NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  user_id BYTEA NOT NULL,
  provider_name TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('ACTIVE', 'REAUTHORIZATION_REQUIRED')),
  state_reason TEXT COLLATE "C",
  access_token BYTEA NOT NULL,
  refresh_token BYTEA,
  previous_refresh_token BYTEA,
  id_token BYTEA,
  token_type BYTEA NOT NULL,
  scope BYTEA NOT NULL,
  origin_parameters TEXT COLLATE "C" NOT NULL,
  obtained_at BIGINT NOT NULL,
  expires_at BIGINT,
  version BIGINT NOT NULL,
  -- By the database's clock, as is next_try_at.
  lease_owner TEXT COLLATE "C",
  lease_until BIGINT,
  fail_count BIGINT NOT NULL DEFAULT 0,
  last_failed_at BIGINT,
  next_try_at BIGINT,
  last_error_class TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (application_id, user_id, provider_name)
);
-- Leases, of which there are few, in the order in which those that were left behind are looked for.
CREATE INDEX connections_leased ON connections (id) WHERE lease_until IS NOT NULL;

CREATE TABLE key_checks (
  key_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  sealed BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE oauth_clients (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  application_id TEXT COLLATE "C" NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  provider_name TEXT COLLATE "C" NOT NULL,
  client_id BYTEA NOT NULL,
  client_secret BYTEA,
  scope BYTEA NOT NULL,
  origin_parameters TEXT COLLATE "C" NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (application_id, provider_name)
);

CREATE TABLE tickets (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('LINK', 'SESSION', 'STATE')),
  browser TEXT COLLATE "C" NOT NULL,
  application_id TEXT COLLATE "C" NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  user_id BYTEA NOT NULL,
  payload BYTEA NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX tickets_by_end ON tickets (expires_at);
CREATE INDEX tickets_by_application ON tickets (application_id, kind);

CREATE TABLE webhook_endpoints (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES applications (id) ON DELETE CASCADE,
  uri BYTEA NOT NULL,
  secret BYTEA NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE webhook_events (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  application_id TEXT COLLATE "C" NOT NULL REFERENCES applications (id) ON DELETE CASCADE,
  payload TEXT COLLATE "C" NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_try_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX webhook_events_due ON webhook_events (next_try_at);
CREATE INDEX webhook_events_by_application ON webhook_events (application_id);
`;
