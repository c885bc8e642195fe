import type pg from "pg";
import type { Presence } from "../oauth/peers.js";
import { postgresErrorFrom } from "./postgres-error.js";
import { takeConnection } from "./postgres-pool.js";

/** What a process needs to prove that it lives. */
export interface PresenceOptions {
  /** A pool of one connection, which is held for as long as the process lives. */
  readonly pool: pg.Pool;
  /** 16 hexadecimal digits: the key of the lock. */
  readonly owner: string;
  /** Whether the owner is on this machine, where its spool shows more reliably whether it lives. */
  readonly knows: (owner: string) => boolean;
}

/**
 * How long an owner must be missing before it counts as gone, in milliseconds. An owner whose session was ended takes
 * its lock again at its next look, and processes on the machine of a dead owner store its answers in that time. Well
 * within a provider's grace window of 30 s.
 */
const MISSING_MS = 10_000;
/** Looks come every two seconds; a longer gap than this means that this process was suspended. Milliseconds. */
const MAX_GAP_MS = 30_000;
/** How soon to retry when the database does not support the query; it may have been a rare error. Milliseconds. */
const AGAIN_MS = 10 * 60_000;
/** Lets the server notice a dead machine within 11 s. A server that lacks these settings uses its own. */
const KEEP_ALIVE = { tcp_keepalives_idle: "5", tcp_keepalives_interval: "2", tcp_keepalives_count: "3" };

const SESSION = `SELECT ${Object.keys(KEEP_ALIVE)
  .map((name, at) => `set_config('${name}', $${at + 1}, false)`)
  .join(", ")}`;
/** Owners whose lock is held: advisory locks of this database with a single 64-bit key. */
const PRESENT = `SELECT lpad(to_hex(classid::bigint), 8, '0') || lpad(to_hex(objid::bigint), 8, '0') AS owner
  FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
/** Takes the lock unless it is held: a connection pooler may have given us another session meanwhile. */
const LOCK = `SELECT pg_try_advisory_lock($1::bigint) WHERE $2 NOT IN (${PRESENT})`;
/** Owners with leases but no lock. Empty while our own lock is not visible, since others may not be visible, either. */
const MISSING = `WITH present AS (${PRESENT})
  SELECT DISTINCT lease_owner AS owner FROM connections
  WHERE lease_until IS NOT NULL AND lease_owner ~ '^[0-9a-f]{16}$'
    AND lease_owner NOT IN (SELECT owner FROM present) AND $1 IN (SELECT owner FROM present)`;

/**
 * Proves to relays on other machines that this process lives, by an advisory lock of one session, which the server
 * frees when the session ends. Nobody ever waits for the lock, and nothing else looks at it.
 */
export function createPresence({ pool, owner, knows }: PresenceOptions): Presence & { close(): Promise<void> } {
  const missingSince = new Map<string, number>();
  let client: pg.PoolClient | undefined;
  let unsupportedUntil = 0;
  let lookedAt = 0;

  async function takeLock(): Promise<pg.PoolClient> {
    const made = client ?? (await takeConnection(pool));
    const isNew = client === undefined;
    // Set before the first query, so that the connection is released when a query fails.
    client = made;
    if (isNew) await made.query(SESSION, Object.values(KEEP_ALIVE));
    await made.query(LOCK, [String(BigInt.asIntN(64, BigInt(`0x${owner}`))), owner]);
    return made;
  }

  /** Owners that were missing in every look for long enough. Rejects with PostgresError. */
  async function findMissing(): Promise<string[]> {
    const { rows } = await withLock((session) => session.query<{ owner: string }>(MISSING, [owner]));
    const missing = rows.map((row) => row.owner).filter((each) => !knows(each));
    for (const known of missingSince.keys()) if (!missing.includes(known)) missingSince.delete(known);
    const now = performance.now();
    // An owner that was missing before and after a suspend of this process may have been there in between.
    if (now - lookedAt > MAX_GAP_MS) missingSince.clear();
    lookedAt = now;
    for (const each of missing) if (!missingSince.has(each)) missingSince.set(each, now);
    return missing.filter((each) => now - (missingSince.get(each) ?? now) >= MISSING_MS);
  }

  /** Takes the lock if it is not held. Rejects with PostgresError. */
  async function withLock<Result>(use: (session: pg.PoolClient) => Promise<Result>): Promise<Result> {
    try {
      return await use(await takeLock());
    } catch (thrown) {
      const error = postgresErrorFrom(thrown);
      // A database that is only compatible with PostgreSQL: leases of other machines then end only by time.
      if (/^(0A|42)/.test(error.code)) unsupportedUntil = performance.now() + AGAIN_MS;
      client?.release(true);
      client = undefined;
      missingSince.clear();
      throw error;
    }
  }

  return {
    async begin() {
      await withLock(async () => {}).catch((error) => {
        if (performance.now() >= unsupportedUntil) throw error;
      });
    },
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
