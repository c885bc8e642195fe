import {
  type Connection,
  type Lease,
  MAX_BACKOFF_MS,
  MAX_LEASE_MS,
  NOTICE_MS,
  type RenewalFailure,
  type RenewedTokens,
} from "../oauth/connection.js";
import type { RefusalEvidence, Trouble } from "../oauth/verdict.js";
import { columnsFromTrouble, type TroubleColumns } from "./connection-row.js";
import { CONNECTION_READ, type PostgresConnectionRead } from "./postgres-connection-row.js";
import { CLOCK, createStatement, type Queries, type Session } from "./postgres-session.js";
import { enqueueEvent } from "./postgres-webhooks.js";
import { boundsOf, type EvidenceBounds, OTHERS_REFRESHED, OTHERS_REFRESHED_AT, REFUSED } from "./refusal-evidence.js";
import type { RenewalStore } from "./renewals.js";

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
    commitRenewal: (lease, tokens, now) => session.write((queries) => commit(queries, lease, tokens, now)),
    keepPreviousRefreshToken: ({ connection: { id } }, token) =>
      session.write(async ({ run }) => void (await run(KEEP_PREVIOUS, { id, token }))),
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
    requireReauthorization: (connection, reason, now, trouble) =>
      session.write((queries) => end(queries, connection, { reason, now, trouble })),
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
   FROM connections WHERE id = :id AND version = :version AND state = 'ACTIVE' FOR UPDATE`,
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

const NOTICE = createStatement<{ id: string; notice_ms: number }>(
  "give_notice",
  `UPDATE connections SET lease_owner = NULL, lease_until = ${CLOCK} + :notice_ms::bigint WHERE id = :id`,
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
    await run(NOTICE, { id, notice_ms: NOTICE_MS });
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
     version = version + 1, lease_owner = NULL, lease_until = NULL, unanswered_since = NULL,
     fail_count = 0, next_try_at = NULL, last_error_class = NULL, last_failed_at = NULL,
     trouble = NULL, refusal = NULL, refused_at = NULL, refreshed_at = :now, updated_at = :now
   WHERE id = :id AND version = :version::bigint`,
);

const STORED = createStatement<{ id: string }, { access_token: Buffer }>(
  "stored_token",
  "SELECT access_token FROM connections WHERE id = :id",
);

/**
 * When the row has changed it may be our own doing: a commit whose answer was lost (threats A06). A sealed value is
 * unique by its random IV, so the row that holds ours was written by us.
 */
async function commit(queries: Queries, { connection }: Lease, tokens: RenewedTokens, now: number): Promise<boolean> {
  const changed = await queries.run(COMMIT, {
    id: connection.id,
    version: connection.version,
    access_token: tokens.accessToken,
    refresh_token: tokens.refreshToken ?? null,
    id_token: tokens.idToken ?? null,
    scope: tokens.scope === undefined ? null : Buffer.from(tokens.scope),
    obtained_at: tokens.obtainedAt,
    expires_at: tokens.expiresAt ?? null,
    now,
  });
  // Applications are told of a connection that lives again, since they were told that it did not.
  if (changed > 0 && connection.state !== "ACTIVE") await enqueueEvent(queries, "connection.created", connection, now);
  else if (changed > 0 && connection.trouble?.toldAt !== undefined)
    await enqueueEvent(queries, "connection.refresh_recovered", connection, now);
  if (changed > 0) return true;
  const stored = (await queries.first(STORED, { id: connection.id }))?.access_token;
  return stored?.equals(tokens.accessToken) ?? false;
}

const KEEP_PREVIOUS = createStatement<{ id: string; token: Uint8Array }>(
  "keep_previous",
  "UPDATE connections SET previous_refresh_token = :token WHERE id = :id",
);

const FAIL = createStatement<object>(
  "record_failure",
  `UPDATE connections SET
     fail_count = fail_count + 1, trouble = :trouble, refusal = :refusal, refused_at = :refused_at,
     last_failed_at = :now::bigint, last_error_class = :error_class, next_try_at = ${CLOCK} + :wait_ms::bigint,
     refresh_token = coalesce(:refresh_token::bytea, refresh_token),
     version = CASE WHEN :refresh_token::bytea IS NULL THEN version ELSE version + 1 END,
     lease_owner = NULL, lease_until = NULL,
     unanswered_since = CASE WHEN :refresh_token::bytea IS NOT NULL THEN NULL
       WHEN :is_unspent::boolean THEN :unanswered_since::bigint ELSE unanswered_since END,
     updated_at = :now::bigint
   WHERE id = :id AND lease_owner = :owner`,
);

async function fail(
  queries: Queries,
  { connection, owner }: Lease,
  { errorClass, isUnspent, waitMs, refreshToken, trouble }: RenewalFailure,
  now: number,
): Promise<void> {
  const changed = await queries.run(FAIL, {
    id: connection.id,
    owner,
    error_class: errorClass,
    wait_ms: waitMs,
    refresh_token: refreshToken ?? null,
    is_unspent: isUnspent,
    unanswered_since: connection.unansweredSince ?? null,
    ...columnsFromTrouble(trouble),
    now,
  });
  if (changed > 0 && trouble.toldAt !== connection.trouble?.toldAt)
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
  `UPDATE connections SET lease_owner = NULL, lease_until = NULL, unanswered_since = :unanswered_since::bigint
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

const END = createStatement<{ id: string; version: number; reason: string; now: number } & TroubleColumns>(
  "require_reauthorization",
  `UPDATE connections SET state = 'REAUTHORIZATION_REQUIRED', state_reason = :reason, lease_owner = NULL,
     lease_until = NULL, next_try_at = NULL, trouble = coalesce(:trouble, trouble),
     refusal = coalesce(:refusal, refusal), refused_at = coalesce(:refused_at, refused_at),
     version = version + 1, updated_at = :now
   WHERE id = :id AND version = :version AND state = 'ACTIVE'`,
);

interface EndOptions {
  readonly reason: string;
  readonly now: number;
  readonly trouble: Trouble | undefined;
}

async function end(queries: Queries, connection: Connection, { reason, now, trouble }: EndOptions): Promise<boolean> {
  const { id, version } = connection;
  if ((await queries.run(END, { id, version, reason, now, ...columnsFromTrouble(trouble) })) === 0) return false;
  await enqueueEvent(queries, "connection.reauthorization_required", connection, now, reason);
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
