import { type Guard, guard } from "./guard.js";

const RENEWALS = "store/postgres-renewals.ts";
const SESSION = "store/postgres-session.ts";
const CACHE = "store/lookup-cache.ts";
const REREADER = "store/rereader.ts";
const POOL = "store/postgres-pool.ts";
const LOCATION = "database-location.ts";

/** What several relays on PostgreSQL rely on. */
export const POSTGRES_GUARDS: readonly Guard[] = [
  guard(
    "postgres: compare and swap",
    RENEWALS,
    ["WHERE id = :id AND version = :version::bigint`", "WHERE id = :id AND :version::bigint > 0`"],
    "store/lease",
  ),
  guard("postgres: one owner", RENEWALS, ["if (isOthers && row.is_leased)", "if (false)"], "store/lease"),
  guard(
    "postgres: own commit",
    RENEWALS,
    ["return stored?.equals(tokens.accessToken) ?? false", "return false"],
    "store/postgres-session",
  ),
  guard(
    "postgres: an ended lease is left to its owner for a while",
    RENEWALS,
    ["if (isOthers && row.lease_owner !== null)", "if (false)"],
    "store/lease",
  ),
  guard("postgres: another connection", SESSION, ["!wasKnown || !isLoss(error)", "true"], "store/postgres-session"),
  guard("postgres: conflicts", SESSION, ["isConflict(error) ? WAITS_MS[tries]", "false ? 0"], "store/postgres-session"),
  guard("postgres: durable commits", POOL, ["WHEN 'off' THEN 'on'", "WHEN 'off' THEN 'off'"], "store/postgres-session"),
  guard("postgres: no standby", POOL, ['rows[0]?.read_only === "on"', "false"], "store/postgres-session"),
  guard(
    "postgres: limit of captures",
    "store/postgres-captures.ts",
    ["        await run(LOCK, { application_id: row.application_id });\n", ""],
    "store/calls",
  ),
  guard("postgres: staleness", CACHE, ["const MAX_STALE_MS = 1000", "const MAX_STALE_MS = 2000"], "store/lookup-cache"),
  guard(
    "postgres: staleness of what is read again",
    REREADER,
    ["entry.renew(askedAt, value)", "entry.renew(now(), value)"],
    "store/rereader",
  ),
  guard(
    "postgres: own changes over what was asked before",
    REREADER,
    ["if (entries.get(key) !== entry) continue;", ""],
    "store/rereader",
  ),
  guard("postgres: gone is gone", REREADER, ["entries.delete(key);", ""], "store/rereader"),
  guard("postgres: own changes at once", CACHE, ["void entries.delete(key),", "void key,"], "store/lookup-cache"),
  guard(
    "postgres: verified TLS",
    LOCATION,
    ['? "disable" : "verify-full"', '? "disable" : "require"'],
    "database-location",
  ),
];
