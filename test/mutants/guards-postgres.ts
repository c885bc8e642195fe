import { type Guard, guard } from "./guard.js";

/** What several relays on PostgreSQL rely on. */
export const POSTGRES_GUARDS: readonly Guard[] = [
  guard(
    "postgres: compare and swap",
    [
      "refreshed_at = :now, updated_at = :now\n   WHERE id = :id AND version <= :version::bigint`",
      "refreshed_at = :now, updated_at = :now\n   WHERE id = :id AND :version::bigint > 0`",
    ],
    "store/lease",
  ),
  guard("postgres: one owner", ["if (isOthers && row.is_leased)", "if (false)"], "store/lease"),
  guard(
    "postgres: own commit",
    [": Buffer.from(row.access_token).equals(accessToken);", ": false;"],
    "store/postgres-session",
  ),
  guard(
    "postgres: an ended lease is left to its owner for a while",
    [
      "if (isOthers && row.is_leased) return undefined; if (isOthers && row.lease_owner !== null)",
      "if (isOthers && row.is_leased) return undefined; if (false)",
    ],
    "store/lease",
  ),
  guard("postgres: another connection", ["!wasKnown || !isLoss(error)", "true"], "store/postgres-session"),
  guard("postgres: conflicts", ["isConflict(error) ? WAITS_MS[tries]", "false ? 0"], "store/postgres-session"),
  guard("postgres: durable commits", ["WHEN 'off' THEN 'on'", "WHEN 'off' THEN 'off'"], "store/postgres-session"),
  guard("postgres: no standby", ['rows[0]?.read_only === "on"', "false"], "store/postgres-session"),
  guard(
    "postgres: limit of captures",
    ["        await run(LOCK, { application_id: row.application_id });\n", ""],
    "store/calls",
  ),
  guard("postgres: staleness", ["const MAX_STALE_MS = 1000", "const MAX_STALE_MS = 2000"], "store/lookup-cache"),
  guard(
    "postgres: staleness of what is read again",
    ["entry.renew(askedAt, value)", "entry.renew(now(), value)"],
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
