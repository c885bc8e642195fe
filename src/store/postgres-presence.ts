import type pg from "pg";
import type { Peers } from "../oauth/peers.js";
import { postgresErrorFrom } from "./postgres-error.js";
import { takeConnection } from "./postgres-pool.js";

/** What proving that a process lives needs. */
export interface PresenceOptions {
  /** Of one connection, which is held for as long as the process lives. */
  readonly pool: pg.Pool;
  /** 16 hexadecimal digits: the key of the lock. */
  readonly owner: string;
  /** Whether the owner is of this machine, where its spool tells more surely whether it lives. */
  readonly knows: (owner: string) => boolean;
}

/** How a process is seen by those on other machines. */
export interface Presence extends Peers {
  close(): Promise<void>;
}

/**
 * An owner must be missing for so long, in milliseconds: one whose session was ended takes its lock again at its next
 * look, and one that is gone is replayed by those on its own machine before. Within the 30 s of a provider's grace.
 */
const MISSING_MS = 10_000;
/** Looks come every two seconds; a process that stood still for longer than this has seen nothing. Milliseconds. */
const MAX_GAP_MS = 30_000;
/** What the database does not know is asked for so seldom; it may have been a rare error. Milliseconds. */
const AGAIN_MS = 10 * 60_000;
/** A machine that is gone is noticed by the server within 11 s. A server without these settings decides by its own. */
const KEEP_ALIVE = { tcp_keepalives_idle: "5", tcp_keepalives_interval: "2", tcp_keepalives_count: "3" };

const SESSION = `SELECT ${Object.keys(KEEP_ALIVE)
  .map((name, at) => `set_config('${name}', $${at + 1}, false)`)
  .join(", ")}`;
/** Locks of this database whose key is one number of 64 bits. */
const PRESENT = `SELECT lpad(to_hex(classid::bigint), 8, '0') || lpad(to_hex(objid::bigint), 8, '0') AS owner
  FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
/** Taken once; a pooler may have given us another session meanwhile. */
const LOCK = `SELECT pg_try_advisory_lock($1::bigint) WHERE $2 NOT IN (${PRESENT})`;
/** Who has leases and no lock; nobody while our own lock is not seen, since then others may not be, either. */
const MISSING = `WITH present AS (${PRESENT})
  SELECT DISTINCT lease_owner AS owner FROM connections
  WHERE lease_until IS NOT NULL AND lease_owner ~ '^[0-9a-f]{16}$'
    AND lease_owner NOT IN (SELECT owner FROM present) AND $1 IN (SELECT owner FROM present)`;

/**
 * Proves to relays on other machines that this process lives: an advisory lock of one session, which the server frees
 * when the session ends. It is never waited for, and nothing but this looks at it.
 */
export function createPresence({ pool, owner, knows }: PresenceOptions): Presence {
  const missingSince = new Map<string, number>();
  let client: pg.PoolClient | undefined;
  let unsupportedUntil = 0;
  let lookedAt = 0;

  async function announce(): Promise<pg.PoolClient> {
    const made = client ?? (await takeConnection(pool));
    const isNew = client === undefined;
    // Before anything is asked of it, so that it is given back when that fails.
    client = made;
    if (isNew) await made.query(SESSION, Object.values(KEEP_ALIVE));
    await made.query(LOCK, [String(BigInt.asIntN(64, BigInt(`0x${owner}`))), owner]);
    return made;
  }

  /** Owners that have been missing in each look for long enough. Rejects with PostgresError. */
  async function findMissing(): Promise<string[]> {
    const missing = (await askForMissing()).filter((each) => !knows(each));
    for (const known of missingSince.keys()) if (!missing.includes(known)) missingSince.delete(known);
    const now = performance.now();
    // Who was missing before and after a halt of this process may have been there in between.
    if (now - lookedAt > MAX_GAP_MS) missingSince.clear();
    lookedAt = now;
    for (const each of missing) if (!missingSince.has(each)) missingSince.set(each, now);
    return missing.filter((each) => now - (missingSince.get(each) ?? now) >= MISSING_MS);
  }

  async function askForMissing(): Promise<string[]> {
    try {
      const { rows } = await (await announce()).query<{ owner: string }>(MISSING, [owner]);
      return rows.map((row) => row.owner);
    } catch (thrown) {
      const error = postgresErrorFrom(thrown);
      // A database that only speaks like PostgreSQL: leases of other machines then end by time alone.
      if (/^(0A|42)/.test(error.code)) unsupportedUntil = performance.now() + AGAIN_MS;
      client?.release(true);
      client = undefined;
      missingSince.clear();
      throw error;
    }
  }

  return {
    async settleGone({ free }) {
      if (performance.now() < unsupportedUntil) return;
      for (const gone of await findMissing()) await free(gone);
    },
    async close() {
      client?.release(true);
      client = undefined;
      await pool.end();
    },
  };
}
