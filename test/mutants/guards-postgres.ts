import { type Guard, guard } from "./guard.js";

/** What several relays on PostgreSQL rely on. */
export const POSTGRES_GUARDS: readonly Guard[] = [
  guard(
    "postgres: own commit",
    [": Buffer.from(row.accessToken).equals(accessToken);", ": false;"],
    "store/postgres-session",
  ),
  guard("postgres: another connection", ["!wasKnown || !isLoss(error)", "true"], "store/postgres-session"),
  guard("postgres: conflicts", ["isConflict(error) ? WAITS_MS[tries]", "false ? 0"], "store/postgres-session"),
  guard("postgres: durable commits", ["WHEN 'off' THEN 'on'", "WHEN 'off' THEN 'off'"], "store/postgres-session"),
  guard("postgres: no standby", ['rows[0]?.read_only === "on"', "false"], "store/postgres-session"),
  guard(
    "postgres: limit of captures",
    ["WHERE id = :application_id FOR NO KEY UPDATE", "WHERE id = :application_id"],
    "store/calls",
  ),
  guard("postgres: staleness", ["const MAX_STALE_MS = 1000", "const MAX_STALE_MS = 2000"], "store/lookup-cache"),
  guard(
    "postgres: staleness of what is read again",
    ["entry.refresh(askedAt, value)", "entry.refresh(now(), value)"],
    "store/rereader",
  ),
  guard(
    "postgres: own changes over what was asked before",
    ["if (entries.get(key) !== entry) continue;", ""],
    "store/rereader",
  ),
  guard(
    "postgres: gone is gone",
    ["if (entries.get(key) !== entry) continue; entries.delete(key);", "if (entries.get(key) !== entry) continue;"],
    "store/rereader",
  ),
  guard("postgres: own changes at once", ["void entries.delete(key),", "void key,"], "store/lookup-cache"),
  guard(
    "postgres: verified TLS",
    ['? "disable" : "verify-full"', '? "disable" : "require"'],
    "config/database-location",
  ),
];
