/** Making connections in a browser, and telling applications of them. Times are milliseconds since the epoch. */
export const MIGRATION_3 = `
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
