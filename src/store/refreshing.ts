import {
  type CommitOutcome,
  type Connection,
  type ConnectionKey,
  type ConnectionStore,
  type EndOptions,
  type Lease,
  type LeasedConnection,
  MAX_BACKOFF_MS,
  MAX_LEASE_MS,
  type RefreshedTokens,
  type RefreshFailure,
} from "../oauth/connection.js";
import {
  CONNECTION_READ,
  type ConnectionRead,
  columnsFromTrouble,
  connectionFromRow,
  findEvidence,
  KEEP_ATTEMPT,
  textFromAttempt,
} from "./connection-row.js";
import { all, createStatement, type Database, first, type Operation, run } from "./database.js";
import { enqueueEvent } from "./webhooks.js";

/**
 * The leases of threats 3.3: every statement is a compare-and-swap on version or owner, by the store's clock. So no
 * lock or transaction is held during the request to the provider, and a late answer never overwrites a newer one.
 */
export function createRefreshStore(
  database: Database,
  /** Drop a row from the cache when it, or only its lease, has changed. */
  { forget, forgetLease }: Record<"forget" | "forgetLease", (connection: ConnectionKey) => () => void>,
) {
  const read = (row: ConnectionRead) => connectionFromRow(row, database.now);
  return {
    async takeLease(connection, owner, leaseMs, skipsWait = false) {
      const row = await database.write(() => take(connection, { owner, leaseMs, skipsWait }), forgetLease(connection));
      if (row === undefined) return undefined;
      const { previousRefreshToken, leaseOwner, isLeased, isWaiting, ...own } = row;
      return { connection: read(own), owner, previousRefreshToken };
    },
    commitRefresh: (connection, tokens, now) =>
      database.write(() => commit(connection, tokens, now), forget(connection)),
    recordFailure: (lease, failure, now) => database.write(() => fail(lease, failure, now), forget(lease.connection)),
    async extendLease({ connection, owner }, leaseMs) {
      const extend = () => run(EXTEND, { id: connection.id, owner, leaseMs });
      return (await database.write(extend, forgetLease(connection))) > 0;
    },
    freeLeases: async (owner) => void (await database.write(() => run(FREE, { owner }))),
    async releaseLease({ connection, owner }) {
      const { id, unansweredSince } = connection;
      const release = () => run(RELEASE, { id, owner, unansweredSince });
      await database.write(release, forgetLease(connection));
    },
    async noteTrouble(connection, trouble) {
      const { id, version } = connection;
      await database.write(() => run(NOTE, { id, version, ...columnsFromTrouble(trouble) }), forget(connection));
    },
    findEvidence: (connection, words, since, now) => database.read(() => findEvidence(connection, words, since, now)),
    requireReauthorization: (connection, reason, now, options = {}) =>
      database.write(() => end(connection, { ...options, reason, now }), forget(connection)),
    findAbandoned: async (afterId, limit) => (await database.read(() => all(ABANDONED, { afterId, limit }))).map(read),
    findExpired: async (endedBefore, limit) =>
      (await database.read(() => all(EXPIRED, { endedBefore, limit }))).filter(hasEnded).map(read),
  } satisfies Partial<ConnectionStore>;
}

/** SQL for `isAhead()`, by the store's clock. */
function isAheadSql(column: string, maxMs: number): string {
  return `${column} > :clock AND ${column} <= :clock + ${maxMs}`;
}

type LeaseRow = ConnectionRead & {
  readonly previousRefreshToken: Uint8Array | undefined;
  readonly leaseOwner: string | undefined;
  readonly isLeased: boolean | number;
  readonly isWaiting: boolean | number;
};

/** Locks the row for the rest of the short transaction, so that it cannot change between check and write. */
const SELECT_FREE = createStatement<{ id: string; version: number }, LeaseRow>(`
   SELECT ${CONNECTION_READ}, previous_refresh_token, lease_owner,
     coalesce(${isAheadSql("lease_until", MAX_LEASE_MS)}, false) AS is_leased,
     coalesce(${isAheadSql("next_try_at", MAX_BACKOFF_MS)}, false) AS is_waiting
   FROM connections
   WHERE id = :id AND version = :version AND (state = 'ACTIVE' OR previous_refresh_token IS NOT NULL) FOR UPDATE`);

const TAKE = createStatement<{ id: string; owner: string; leaseMs: number }>(`
   UPDATE connections SET lease_owner = :owner, lease_until = :clock + CAST(:lease_ms AS BIGINT),
     unanswered_since = coalesce(unanswered_since, :clock)
   WHERE id = :id`);

const NOTICE = createStatement<{ id: string; leaseMs: number }>(
  `UPDATE connections SET lease_owner = NULL, lease_until = :clock + CAST(:lease_ms AS BIGINT) WHERE id = :id`,
);

function* take(
  { id, version }: Connection,
  { owner, leaseMs, skipsWait }: { owner: string; leaseMs: number; skipsWait: boolean },
): Operation<LeaseRow | undefined> {
  const row = yield* first(SELECT_FREE, { id, version });
  if (row === undefined || (row.isWaiting && !skipsWait)) return undefined;
  const isOthers = row.leaseOwner !== owner;
  if (isOthers && row.isLeased) return undefined;
  if (isOthers && row.leaseOwner !== undefined) {
    yield* run(NOTICE, { id, leaseMs });
    return undefined;
  }
  yield* run(TAKE, { id, owner, leaseMs });
  return row;
}

const COMMIT = createStatement<object>(`UPDATE connections SET state = 'ACTIVE', state_reason = NULL,
     access_token = :access_token,
     refresh_token = coalesce(:refresh_token, refresh_token), previous_refresh_token = NULL,
     id_token = coalesce(:id_token, id_token), scope = coalesce(:scope, scope),
     obtained_at = :obtained_at, expires_at = :expires_at,
     origin_parameters = coalesce(:origin_parameters, origin_parameters),
     version = CAST(:version AS BIGINT) + 1, lease_owner = NULL, lease_until = NULL, unanswered_since = NULL,
     fail_count = 0, next_try_at = NULL, last_error_class = NULL, last_failed_at = NULL,
     trouble = NULL, refusal = NULL, refused_at = NULL, ${KEEP_ATTEMPT},
     refreshed_at = :now, updated_at = :now
   WHERE id = :id AND version <= CAST(:version AS BIGINT)`);

const REPLACE_REFRESH_TOKEN = createStatement<object>(`UPDATE connections SET refresh_token = :refresh_token,
     previous_refresh_token = CASE WHEN state = 'ACTIVE' THEN NULL ELSE CAST(:late_refresh_token AS BYTEA) END,
     version = CAST(:version AS BIGINT) + 1, unanswered_since = NULL, updated_at = :now
   WHERE id = :id AND version <= CAST(:version AS BIGINT)`);

const KEEP_LATE = createStatement<object>(`UPDATE connections SET previous_refresh_token = :late_refresh_token,
     lease_until = CASE WHEN state = 'ACTIVE' OR lease_owner IS NOT NULL THEN lease_until ELSE :clock END
   WHERE id = :id AND (version = CAST(:version AS BIGINT) + 1 OR state <> 'ACTIVE')`);

type StoredTokens = Pick<Connection, "id" | "accessToken" | "refreshToken">;

const STORED = createStatement<ConnectionKey, StoredTokens>(`
   SELECT id, access_token, refresh_token FROM connections
   WHERE application_id = :application_id AND user_id = :user_id AND provider_name = :provider_name`);

function* commit(connection: LeasedConnection, tokens: RefreshedTokens, now: number): Operation<CommitOutcome> {
  const { id, version, state, trouble } = connection;
  const values = {
    ...tokens,
    ...{ id, version, now },
    originParameters: tokens.originParameters && JSON.stringify(tokens.originParameters),
    attempt: textFromAttempt(tokens.attempt),
  };
  const isWhole = tokens.accessToken !== undefined;
  if ((yield* run(isWhole ? COMMIT : REPLACE_REFRESH_TOKEN, values)) > 0) {
    // The application was notified that the connection had ended, so it is notified that it is back.
    if (isWhole && state !== "ACTIVE") yield* enqueueEvent("connection.created", connection, now);
    else if (isWhole && trouble?.toldAt !== undefined)
      yield* enqueueEvent("connection.refresh_recovered", connection, now);
    return "stored";
  }
  const current = yield* first(STORED, connection);
  if (current === undefined) return "gone";
  if (current.id === id && holds(current, tokens)) return "stored";
  if (tokens.lateRefreshToken !== undefined) yield* run(KEEP_LATE, values);
  return "superseded";
}

/**
 * Whether a row already has exactly these tokens: the confirmation of a commit was lost (threats A06), or a spool kept
 * an answer that its owner had stored. Every sealed value is unique.
 */
function holds(row: StoredTokens, { accessToken, refreshToken }: RefreshedTokens): boolean {
  return accessToken === undefined
    ? Buffer.from(row.refreshToken ?? []).equals(refreshToken ?? Buffer.alloc(0))
    : Buffer.from(row.accessToken).equals(accessToken);
}

const FAIL = createStatement<object>(`UPDATE connections SET
     fail_count = fail_count + 1, trouble = :trouble, refusal = :refusal, refused_at = :refused_at,
     last_failed_at = CAST(:now AS BIGINT), last_error_class = :error_class,
     next_try_at = :clock + CAST(:wait_ms AS BIGINT), lease_owner = NULL,
     lease_until = CASE WHEN state = 'ACTIVE' THEN NULL ELSE :clock + CAST(:wait_ms AS BIGINT) END,
     unanswered_since = CASE WHEN CAST(:is_unspent AS BIGINT) = 1
       THEN CAST(:unanswered_since AS BIGINT) ELSE unanswered_since END,
     updated_at = CAST(:now AS BIGINT), ${KEEP_ATTEMPT}
   WHERE id = :id AND lease_owner = :owner`);

function* fail(
  { connection, owner }: Lease,
  { errorClass, isUnspent, waitMs, trouble, attempt }: RefreshFailure,
  now: number,
): Operation<void> {
  const changed = yield* run(FAIL, {
    id: connection.id,
    owner,
    errorClass,
    waitMs,
    isUnspent: Number(isUnspent),
    unansweredSince: connection.unansweredSince,
    ...columnsFromTrouble(trouble),
    attempt: textFromAttempt(attempt),
    now,
  });
  if (changed > 0 && connection.state === "ACTIVE" && trouble.toldAt !== connection.trouble?.toldAt)
    yield* enqueueEvent("connection.refresh_failing", connection, now, errorClass);
}

const NOTE = createStatement<{ id: string; version: number } & ReturnType<typeof columnsFromTrouble>>(`
   UPDATE connections SET trouble = :trouble, refusal = :refusal, refused_at = :refused_at
   WHERE id = :id AND version = :version`);

const RELEASE = createStatement<{ id: string; owner: string; unansweredSince: number | undefined }>(
  // For a connection that was given up, lease_until is set so that it is found again and may be refreshed after all.
  `UPDATE connections SET lease_owner = NULL,
     lease_until = CASE WHEN state = 'ACTIVE' THEN NULL ELSE :clock + ${MAX_BACKOFF_MS} END,
     unanswered_since = CAST(:unanswered_since AS BIGINT)
   WHERE id = :id AND lease_owner = :owner`,
);

const EXTEND = createStatement<{ id: string; owner: string; leaseMs: number }>(
  `UPDATE connections SET lease_until = :clock + CAST(:lease_ms AS BIGINT) WHERE id = :id AND lease_owner = :owner`,
);

const FREE = createStatement<{ owner: string }>(`UPDATE connections SET lease_owner = NULL, lease_until = :clock
   WHERE lease_until IS NOT NULL AND lease_owner = :owner`);

const END = createStatement<
  {
    id: string;
    version: number;
    reason: string;
    now: number;
    owner: string | undefined;
    tried: Uint8Array | undefined;
    attempt: string;
  } & ReturnType<typeof columnsFromTrouble>
>(`
   UPDATE connections SET state = 'REAUTHORIZATION_REQUIRED',
     state_reason = CASE WHEN state = 'ACTIVE' THEN :reason ELSE state_reason END,
     previous_refresh_token = CASE WHEN previous_refresh_token IS NOT DISTINCT FROM CAST(:tried AS BYTEA)
       THEN NULL ELSE previous_refresh_token END,
     lease_until = CASE WHEN previous_refresh_token IS NOT DISTINCT FROM CAST(:tried AS BYTEA)
       THEN NULL ELSE :clock END,
     lease_owner = NULL, next_try_at = NULL, trouble = coalesce(:trouble, trouble),
     refusal = coalesce(:refusal, refusal), refused_at = coalesce(:refused_at, refused_at),
     version = version + 1, updated_at = :now, ${KEEP_ATTEMPT}
   WHERE id = :id AND version = :version AND (state = 'ACTIVE' OR previous_refresh_token IS NOT NULL)
     AND (CAST(:owner AS TEXT) IS NULL OR lease_owner = CAST(:owner AS TEXT))`);

function* end(
  connection: Connection,
  { reason, now, trouble, owner, tried, attempt }: EndOptions & { readonly reason: string; readonly now: number },
): Operation<boolean> {
  const { id, version, state } = connection;
  const values = {
    ...{ id, version, reason, now, owner, tried },
    attempt: textFromAttempt(attempt),
    ...columnsFromTrouble(trouble),
  };
  if ((yield* run(END, values)) === 0) return false;
  if (state === "ACTIVE") yield* enqueueEvent("connection.reauthorization_required", connection, now, reason);
  return true;
}

/** Few connections have a lease, so the small index of leases is forced, whatever SQLite's planner prefers. */
const ABANDONED = createStatement<{ afterId: string; limit: number }, ConnectionRead>(`
   SELECT ${CONNECTION_READ} FROM connections INDEXED BY connections_leased
   WHERE lease_until IS NOT NULL AND NOT (${isAheadSql("lease_until", MAX_LEASE_MS)}) AND id > :after_id
   ORDER BY id LIMIT :limit`);

/** Reads a partial index of such connections, in its order. */
const EXPIRED = createStatement<{ endedBefore: number; limit: number }, ConnectionRead>(`
   SELECT ${CONNECTION_READ} FROM connections INDEXED BY connections_unrefreshable
   WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at < CAST(:ended_before AS BIGINT)
   ORDER BY expires_at LIMIT :limit`);

/** Whether the token has expired by the store's own clock, too, if it has one, since ending a connection is final. */
function hasEnded({ expiresAt, clock }: ConnectionRead): boolean {
  return clock === undefined || (expiresAt ?? clock) < clock;
}
