import {
  type CommitOutcome,
  type Connection,
  type EndOptions,
  type Lease,
  type LeasedConnection,
  MAX_BACKOFF_MS,
  MAX_LEASE_MS,
  type RenewalFailure,
  type RenewedTokens,
} from "../oauth/connection.js";
import type { RefusalEvidence } from "../oauth/verdict.js";
import { columnsFromTrouble, type TroubleColumns } from "./connection-row.js";
import { CONNECTION_READ, type PostgresConnectionRead } from "./postgres-connection-row.js";
import { CLOCK, createStatement, type Queries, type Session } from "./postgres-session.js";
import { enqueueEvent } from "./postgres-webhooks.js";
import { boundsOf, type EvidenceBounds, OTHERS_REFRESHED, OTHERS_REFRESHED_AT, REFUSED } from "./refusal-evidence.js";
import { holds, type RenewalStore, type StoredTokens } from "./renewals.js";

/**
 * The lease row of threats 3.3 in PostgreSQL: every statement is a compare-and-swap on version or owner, by the
 * database's clock, so no lock and no transaction is held while the provider is asked.
 */
export function createPostgresRenewalStore(
  session: Session,
  read: (row: PostgresConnectionRead) => Connection,
): RenewalStore {
  return {
    takeLease: (connection, owner, leaseMs, skipsWait = false) =>
      session.write(async (queries) => {
        const row = await take(queries, connection, { owner, leaseMs, skipsWait });
        if (row === undefined) return undefined;
        return { connection: read(row), owner, previousRefreshToken: row.previous_refresh_token ?? undefined };
      }),
    commitRenewal: (connection, tokens, now) => session.write((queries) => commit(queries, connection, tokens, now)),
    recordFailure: (lease, failure, now) => session.write((queries) => fail(queries, lease, failure, now)),
    extendLease: ({ connection: { id }, owner }, leaseMs) =>
      session.write(async ({ run }) => (await run(EXTEND, { id, owner, lease_ms: leaseMs })) > 0),
    freeLeases: (owner) => session.write(async ({ run }) => void (await run(FREE, { owner }))),
    releaseLease: ({ connection: { id, unansweredSince }, owner }) =>
      session.write(
        async ({ run }) => void (await run(RELEASE, { id, owner, unanswered_since: unansweredSince ?? null })),
      ),
    noteTrouble: ({ id, version }, trouble) =>
      session.write(async ({ run }) => void (await run(NOTE, { id, version, ...columnsFromTrouble(trouble) }))),
    findEvidence: (connection, words, since, now) =>
      session.read((queries) => findEvidence(queries, boundsOf(connection, words, since, now))),
    requireReauthorization: (connection, reason, now, options = {}) =>
      session.write((queries) => end(queries, connection, { ...options, reason, now })),
    findAbandoned: async (afterId, limit) =>
      (await session.read(({ all }) => all(ABANDONED, { after_id: afterId, limit }))).map(read),
    findExpired: async (endedBefore, limit) =>
      (await session.read(({ all }) => all(EXPIRED, { ended_before: endedBefore, limit }))).map(read),
  };
}

/** As `isAhead()`, by the database's clock. */
function isAheadSql(column: string, maxMs: number): string {
  return `${column} > ${CLOCK} AND ${column} <= ${CLOCK} + ${maxMs}`;
}

type LeaseRow = PostgresConnectionRead & {
  readonly previous_refresh_token: Uint8Array | null;
  readonly lease_owner: string | null;
  readonly is_leased: boolean;
  readonly is_waiting: boolean;
};

/** The row stays locked for the few statements of the transaction, so that what is judged is what is changed. */
const SELECT_FREE = createStatement<{ id: string; version: number }, LeaseRow>(
  "select_free",
  `SELECT ${CONNECTION_READ}, previous_refresh_token, lease_owner,
     coalesce(${isAheadSql("lease_until", MAX_LEASE_MS)}, false) AS is_leased,
     coalesce(${isAheadSql("next_try_at", MAX_BACKOFF_MS)}, false) AS is_waiting
   FROM connections
   WHERE id = :id AND version = :version AND (state = 'ACTIVE' OR previous_refresh_token IS NOT NULL) FOR UPDATE`,
);

const TAKE = createStatement<{ id: string; owner: string; lease_ms: number }>(
  "take_lease",
  `UPDATE connections SET lease_owner = :owner, lease_until = ${CLOCK} + :lease_ms::bigint,
     unanswered_since = coalesce(unanswered_since, ${CLOCK})
   WHERE id = :id`,
);

interface TakeOptions {
  readonly owner: string;
  readonly leaseMs: number;
  readonly skipsWait: boolean;
}

const NOTICE = createStatement<{ id: string; lease_ms: number }>(
  "give_notice",
  `UPDATE connections SET lease_owner = NULL, lease_until = ${CLOCK} + :lease_ms::bigint WHERE id = :id`,
);

async function take(
  { first, run }: Queries,
  { id, version }: Connection,
  { owner, leaseMs, skipsWait }: TakeOptions,
): Promise<LeaseRow | undefined> {
  const row = await first(SELECT_FREE, { id, version });
  if (row === undefined || (row.is_waiting && !skipsWait)) return undefined;
  const isOthers = row.lease_owner !== owner;
  if (isOthers && row.is_leased) return undefined;
  if (isOthers && row.lease_owner !== null) {
    await run(NOTICE, { id, lease_ms: leaseMs });
    return undefined;
  }
  await run(TAKE, { id, owner, lease_ms: leaseMs });
  return row;
}

const COMMIT = createStatement<object>(
  "commit_renewal",
  `UPDATE connections SET state = 'ACTIVE', state_reason = NULL,
     access_token = :access_token,
     refresh_token = coalesce(:refresh_token, refresh_token), previous_refresh_token = NULL,
     id_token = coalesce(:id_token, id_token), scope = coalesce(:scope, scope),
     obtained_at = :obtained_at, expires_at = :expires_at,
     version = :version::bigint + 1, lease_owner = NULL, lease_until = NULL, unanswered_since = NULL,
     fail_count = 0, next_try_at = NULL, last_error_class = NULL, last_failed_at = NULL,
     trouble = NULL, refusal = NULL, refused_at = NULL, refreshed_at = :now, updated_at = :now
   WHERE id = :id AND version <= :version::bigint`,
);

const REPLACE_REFRESH_TOKEN = createStatement<object>(
  "replace_refresh_token",
  `UPDATE connections SET refresh_token = :refresh_token,
     previous_refresh_token = CASE WHEN state = 'ACTIVE' THEN NULL ELSE :late_refresh_token::bytea END,
     version = :version::bigint + 1, unanswered_since = NULL, updated_at = :now
   WHERE id = :id AND version <= :version::bigint`,
);

const KEEP_LATE = createStatement<object>(
  "keep_late",
  `UPDATE connections SET previous_refresh_token = :late_refresh_token,
     lease_until = CASE WHEN state = 'ACTIVE' OR lease_owner IS NOT NULL THEN lease_until ELSE ${CLOCK} END
   WHERE id = :id AND (version = :version::bigint + 1 OR state <> 'ACTIVE')`,
);

const STORED = createStatement<object, StoredTokens>(
  "stored_tokens",
  `SELECT id, access_token, refresh_token FROM connections
   WHERE application_id = :application_id AND user_id = :user_id AND provider_name = :provider_name`,
);

async function commit(
  queries: Queries,
  connection: LeasedConnection,
  tokens: RenewedTokens,
  now: number,
): Promise<CommitOutcome> {
  const { id, version, state, trouble } = connection;
  const values = {
    id,
    version,
    access_token: tokens.accessToken ?? null,
    refresh_token: tokens.refreshToken ?? null,
    late_refresh_token: tokens.lateRefreshToken ?? null,
    id_token: tokens.idToken ?? null,
    scope: tokens.scope === undefined ? null : Buffer.from(tokens.scope),
    obtained_at: tokens.obtainedAt,
    expires_at: tokens.expiresAt ?? null,
    now,
  };
  const isWhole = tokens.accessToken !== undefined;
  if ((await queries.run(isWhole ? COMMIT : REPLACE_REFRESH_TOKEN, values)) > 0) {
    // Applications are told of a connection that lives again, since they were told that it did not.
    if (isWhole && state !== "ACTIVE") await enqueueEvent(queries, "connection.created", connection, now);
    else if (isWhole && trouble?.toldAt !== undefined)
      await enqueueEvent(queries, "connection.refresh_recovered", connection, now);
    return "stored";
  }
  const current = await queries.first(STORED, {
    application_id: connection.applicationId,
    user_id: Buffer.from(connection.userId),
    provider_name: connection.providerName,
  });
  if (current === undefined) return "gone";
  if (current.id === id && holds(current, tokens)) return "stored";
  if (tokens.lateRefreshToken !== undefined) await queries.run(KEEP_LATE, values);
  return "superseded";
}

const FAIL = createStatement<object>(
  "record_failure",
  `UPDATE connections SET
     fail_count = fail_count + 1, trouble = :trouble, refusal = :refusal, refused_at = :refused_at,
     last_failed_at = :now::bigint, last_error_class = :error_class, next_try_at = ${CLOCK} + :wait_ms::bigint,
     lease_owner = NULL,
     lease_until = CASE WHEN state = 'ACTIVE' THEN NULL ELSE ${CLOCK} + :wait_ms::bigint END,
     unanswered_since = CASE WHEN :is_unspent::boolean THEN :unanswered_since::bigint ELSE unanswered_since END,
     updated_at = :now::bigint
   WHERE id = :id AND lease_owner = :owner`,
);

async function fail(
  queries: Queries,
  { connection, owner }: Lease,
  { errorClass, isUnspent, waitMs, trouble }: RenewalFailure,
  now: number,
): Promise<void> {
  const changed = await queries.run(FAIL, {
    id: connection.id,
    owner,
    error_class: errorClass,
    wait_ms: waitMs,
    is_unspent: isUnspent,
    unanswered_since: connection.unansweredSince ?? null,
    ...columnsFromTrouble(trouble),
    now,
  });
  if (changed > 0 && connection.state === "ACTIVE" && trouble.toldAt !== connection.trouble?.toldAt)
    await enqueueEvent(queries, "connection.refresh_failing", connection, now, errorClass);
}

const NOTE = createStatement<{ id: string; version: number } & TroubleColumns>(
  "note_trouble",
  `UPDATE connections SET trouble = :trouble, refusal = :refusal, refused_at = :refused_at
   WHERE id = :id AND version = :version`,
);

const LAST_REFRESHED = createStatement<EvidenceBounds, { refreshed_at: number }>(
  "others_refreshed_at",
  OTHERS_REFRESHED_AT,
);
const COUNT_REFRESHED = createStatement<EvidenceBounds, { count: number }>("others_refreshed", OTHERS_REFRESHED);
const COUNT_REFUSED = createStatement<EvidenceBounds, { all_refused: number; others_refused: number }>(
  "others_refused",
  REFUSED,
);

/** As refusal-evidence.ts does in SQLite. */
async function findEvidence({ first }: Queries, bounds: EvidenceBounds): Promise<RefusalEvidence> {
  const at = (await first(LAST_REFRESHED, bounds))?.refreshed_at;
  const counts = await first(COUNT_REFUSED, { ...bounds, since: at ?? 0 });
  return {
    othersRefreshedAt: at,
    othersRefreshed: (await first(COUNT_REFRESHED, bounds))?.count ?? 0,
    othersRefused: counts?.others_refused ?? 0,
    allRefused: counts?.all_refused ?? 0,
  };
}

const RELEASE = createStatement<{ id: string; owner: string; unanswered_since: number | null }>(
  "release_lease",
  // What was given up and may be refreshed after all is looked at again.
  `UPDATE connections SET lease_owner = NULL,
     lease_until = CASE WHEN state = 'ACTIVE' THEN NULL ELSE ${CLOCK} + ${MAX_BACKOFF_MS} END,
     unanswered_since = :unanswered_since::bigint
   WHERE id = :id AND lease_owner = :owner`,
);

const EXTEND = createStatement<{ id: string; owner: string; lease_ms: number }>(
  "extend_lease",
  `UPDATE connections SET lease_until = ${CLOCK} + :lease_ms::bigint WHERE id = :id AND lease_owner = :owner`,
);

const FREE = createStatement<{ owner: string }>(
  "free_leases",
  `UPDATE connections SET lease_owner = NULL, lease_until = ${CLOCK}
   WHERE lease_until IS NOT NULL AND lease_owner = :owner`,
);

const END = createStatement<
  {
    id: string;
    version: number;
    reason: string;
    now: number;
    owner: string | null;
    tried: Uint8Array | null;
  } & TroubleColumns
>(
  "require_reauthorization",
  `UPDATE connections SET state = 'REAUTHORIZATION_REQUIRED',
     state_reason = CASE WHEN state = 'ACTIVE' THEN :reason ELSE state_reason END,
     previous_refresh_token =
       CASE WHEN previous_refresh_token IS NOT DISTINCT FROM :tried::bytea THEN NULL ELSE previous_refresh_token END,
     lease_until = CASE WHEN previous_refresh_token IS NOT DISTINCT FROM :tried::bytea THEN NULL ELSE ${CLOCK} END,
     lease_owner = NULL, next_try_at = NULL, trouble = coalesce(:trouble, trouble),
     refusal = coalesce(:refusal, refusal), refused_at = coalesce(:refused_at, refused_at),
     version = version + 1, updated_at = :now
   WHERE id = :id AND version = :version AND (state = 'ACTIVE' OR previous_refresh_token IS NOT NULL)
     AND (:owner::text IS NULL OR lease_owner = :owner::text)`,
);

async function end(
  queries: Queries,
  connection: Connection,
  { reason, now, trouble, owner, tried }: EndOptions & { readonly reason: string; readonly now: number },
): Promise<boolean> {
  const { id, version, state } = connection;
  const values = {
    id,
    version,
    reason,
    now,
    owner: owner ?? null,
    tried: tried ?? null,
    ...columnsFromTrouble(trouble),
  };
  if ((await queries.run(END, values)) === 0) return false;
  if (state === "ACTIVE") await enqueueEvent(queries, "connection.reauthorization_required", connection, now, reason);
  return true;
}

const ABANDONED = createStatement<{ after_id: string; limit: number }, PostgresConnectionRead>(
  "find_abandoned",
  `SELECT ${CONNECTION_READ} FROM connections
   WHERE lease_until IS NOT NULL AND NOT (${isAheadSql("lease_until", MAX_LEASE_MS)}) AND id > :after_id ORDER BY id LIMIT :limit`,
);

/** By both clocks: an end is for good. */
const EXPIRED = createStatement<{ ended_before: number; limit: number }, PostgresConnectionRead>(
  "find_expired",
  `SELECT ${CONNECTION_READ} FROM connections
   WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at < :ended_before::bigint AND expires_at < ${CLOCK}
   ORDER BY expires_at LIMIT :limit`,
);
