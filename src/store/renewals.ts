import type Database from "better-sqlite3";
import {
  type CommitOutcome,
  type Connection,
  type ConnectionKey,
  type ConnectionStore,
  type EndOptions,
  isAhead,
  type Lease,
  type LeasedConnection,
  MAX_BACKOFF_MS,
  MAX_LEASE_MS,
  type RenewalFailure,
  type RenewedTokens,
} from "../oauth/connection.js";
import type { Trouble } from "../oauth/verdict.js";
import type { Attempt } from "./attempt.js";
import { CONNECTION_COLUMNS, type ConnectionRow, columnsFromTrouble, connectionFromRow } from "./connection-row.js";
import { prepareEvidence } from "./refusal-evidence.js";
import type { EnqueueEvent } from "./webhooks.js";

/** The part of the connection store that renewing a token needs. */
export type RenewalStore = Pick<
  ConnectionStore,
  | "takeLease"
  | "commitRenewal"
  | "recordFailure"
  | "extendLease"
  | "freeLeases"
  | "releaseLease"
  | "requireReauthorization"
  | "noteTrouble"
  | "findEvidence"
  | "findAbandoned"
  | "findExpired"
>;

/** What happens besides when a row changes. */
interface RenewalStoreOptions {
  readonly enqueue: EnqueueEvent;
  /** Lets go of a row that is kept. */
  readonly forget: (connection: ConnectionKey) => () => void;
  /** The clock of leases and waits, milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * The lease row of threats 3.3: every statement is a compare-and-swap on version or owner, so no lock and no
 * transaction is held while the provider is asked, and a late answer never overwrites a newer one.
 */
export function createRenewalStore(
  db: Database.Database,
  attempt: Attempt,
  { enqueue, forget, now }: RenewalStoreOptions,
): RenewalStore {
  const take = prepareTake(db);
  const commit = prepareCommit(db, enqueue);
  const fail = prepareFail(db, enqueue);
  const note = prepareNote(db);
  const evidence = prepareEvidence(db);
  // What was given up and may be refreshed after all is looked at again.
  const release = db.prepare<[number, number | null, string, string]>(
    `UPDATE connections SET lease_owner = NULL, lease_until = CASE WHEN state = 'ACTIVE' THEN NULL ELSE ? END,
       unanswered_since = ?
     WHERE id = ? AND lease_owner = ?`,
  );
  const extend = db.prepare<[number, string, string]>(
    "UPDATE connections SET lease_until = ? WHERE id = ? AND lease_owner = ?",
  );
  const free = db.prepare<[number, string]>(
    `UPDATE connections SET lease_owner = NULL, lease_until = ?
     WHERE lease_until IS NOT NULL AND lease_owner = ?`,
  );
  const end = prepareEnd(db, enqueue);
  const abandoned = prepareAbandoned(db);
  const expired = prepareExpired(db);
  return {
    takeLease: (connection, owner, leaseMs, skipsWait = false) =>
      attempt.write(() => take(connection, { owner, leaseMs, skipsWait }, now()), forget(connection)),
    commitRenewal: (connection, tokens, at) =>
      attempt.write(() => commit(connection, tokens, { at, now: now() }), forget(connection)),
    recordFailure: (lease, failure, at) => attempt.write(() => fail(lease, failure, at), forget(lease.connection)),
    extendLease: ({ connection, owner }, leaseMs) =>
      attempt.write(() => extend.run(now() + leaseMs, connection.id, owner).changes > 0, forget(connection)),
    freeLeases: (owner) => attempt.write(() => void free.run(now(), owner)),
    releaseLease: ({ connection, owner }) =>
      attempt.write(
        () => void release.run(now() + MAX_BACKOFF_MS, connection.unansweredSince ?? null, connection.id, owner),
        forget(connection),
      ),
    noteTrouble: (connection, trouble) => attempt.write(() => note(connection, trouble), forget(connection)),
    findEvidence: (connection, words, since, at) => attempt.read(() => evidence(connection, words, since, at)),
    requireReauthorization: (connection, reason, at, options = {}) =>
      attempt.write(() => end(connection, reason, { ...options, at, now: now() }), forget(connection)),
    findAbandoned: (afterId, limit) => attempt.read(() => abandoned(afterId, limit, now())),
    findExpired: (endedBefore, limit) => attempt.read(() => expired(endedBefore, limit)),
  };
}

type LeaseRow = ConnectionRow & {
  readonly previous_refresh_token: Uint8Array | null;
  readonly lease_owner: string | null;
};

function prepareTake(db: Database.Database) {
  const select = db.prepare<[string, number], LeaseRow>(
    `SELECT ${CONNECTION_COLUMNS}, previous_refresh_token, lease_owner FROM connections
     WHERE id = ? AND version = ? AND (state = 'ACTIVE' OR previous_refresh_token IS NOT NULL)`,
  );
  const update = db.prepare<[string, number, number, string]>(
    `UPDATE connections SET lease_owner = ?, lease_until = ?, unanswered_since = coalesce(unanswered_since, ?)
     WHERE id = ?`,
  );
  const notice = db.prepare<[number, string]>(
    "UPDATE connections SET lease_owner = NULL, lease_until = ? WHERE id = ?",
  );
  return (
    { id, version }: Connection,
    { owner, leaseMs, skipsWait }: { readonly owner: string; readonly leaseMs: number; readonly skipsWait: boolean },
    now: number,
  ): Lease | undefined => {
    const row = select.get(id, version);
    if (row === undefined) return undefined;
    const connection = connectionFromRow(row);
    const isOthers = row.lease_owner !== owner;
    if (isOthers && isAhead(connection.leaseUntil, now, MAX_LEASE_MS)) return undefined;
    if (!skipsWait && isAhead(connection.nextTryAt, now, MAX_BACKOFF_MS)) return undefined;
    if (isOthers && row.lease_owner !== null) {
      notice.run(now + leaseMs, id);
      return undefined;
    }
    update.run(owner, now + leaseMs, now, id);
    return { connection, owner, previousRefreshToken: row.previous_refresh_token ?? undefined };
  };
}

/** Two clocks, in milliseconds since the epoch: the process's, for what is shown, and that of leases and waits. */
interface Moments {
  readonly at: number;
  readonly now: number;
}

/** Applications are told of a connection that lives again, since they were told that it did not. */
function prepareCommit(db: Database.Database, enqueue: EnqueueEvent) {
  const store = db.prepare<[Record<string, unknown>]>(`
    UPDATE connections SET state = 'ACTIVE', state_reason = NULL,
      access_token = :access_token,
      refresh_token = coalesce(:refresh_token, refresh_token), previous_refresh_token = NULL,
      id_token = coalesce(:id_token, id_token), scope = coalesce(:scope, scope),
      obtained_at = :obtained_at, expires_at = :expires_at,
      version = :version + 1, lease_owner = NULL, lease_until = NULL, unanswered_since = NULL,
      fail_count = 0, next_try_at = NULL, last_error_class = NULL, last_failed_at = NULL,
      trouble = NULL, refusal = NULL, refused_at = NULL, refreshed_at = :at, updated_at = :at
    WHERE id = :id AND version <= :version`);
  const replaceRefreshToken = db.prepare<[Record<string, unknown>]>(`
    UPDATE connections SET refresh_token = :refresh_token,
      previous_refresh_token = CASE WHEN state = 'ACTIVE' THEN NULL ELSE :late_refresh_token END,
      version = :version + 1, unanswered_since = NULL, updated_at = :at
    WHERE id = :id AND version <= :version`);
  const keepLate = db.prepare<[Record<string, unknown>]>(`
    UPDATE connections SET previous_refresh_token = :late_refresh_token,
      lease_until = CASE WHEN state = 'ACTIVE' OR lease_owner IS NOT NULL THEN lease_until ELSE :now END
    WHERE id = :id AND (version = :version + 1 OR state <> 'ACTIVE')`);
  const select = db.prepare<[string, string, string], StoredTokens>(
    `SELECT id, access_token, refresh_token FROM connections
     WHERE application_id = ? AND user_id = ? AND provider_name = ?`,
  );
  return (connection: LeasedConnection, tokens: RenewedTokens, { at, now }: Moments): CommitOutcome => {
    const { id, version, state, trouble } = connection;
    const values = {
      id,
      version,
      access_token: tokens.accessToken ?? null,
      refresh_token: tokens.refreshToken ?? null,
      late_refresh_token: tokens.lateRefreshToken ?? null,
      id_token: tokens.idToken ?? null,
      scope: tokens.scope ?? null,
      obtained_at: tokens.obtainedAt,
      expires_at: tokens.expiresAt ?? null,
      at,
      now,
    };
    const isWhole = tokens.accessToken !== undefined;
    const { changes } = (isWhole ? store : replaceRefreshToken).run(values);
    if (changes > 0) {
      if (isWhole && state !== "ACTIVE") enqueue("connection.created", connection, at);
      else if (isWhole && trouble?.toldAt !== undefined) enqueue("connection.refresh_recovered", connection, at);
      return "stored";
    }
    const current = select.get(connection.applicationId, connection.userId, connection.providerName);
    if (current === undefined) return "gone";
    if (current.id === id && holds(current, tokens)) return "stored";
    if (tokens.lateRefreshToken !== undefined) keepLate.run(values);
    return "superseded";
  };
}

/** The sealed tokens of a row. */
export interface StoredTokens {
  readonly id: string;
  readonly access_token: Uint8Array;
  readonly refresh_token: Uint8Array | null;
}

/**
 * Whether a row has these very tokens: a commit whose answer was lost (threats A06), or one that a spool kept and its owner
 * stored. No sealed value is made twice.
 */
export function holds(row: StoredTokens, { accessToken, refreshToken }: RenewedTokens): boolean {
  return accessToken === undefined
    ? Buffer.from(row.refresh_token ?? []).equals(refreshToken ?? Buffer.alloc(0))
    : Buffer.from(row.access_token).equals(accessToken);
}

function prepareFail(db: Database.Database, enqueue: EnqueueEvent) {
  const statement = db.prepare<[Record<string, unknown>]>(`
    UPDATE connections SET fail_count = fail_count + 1, trouble = :trouble, refusal = :refusal, refused_at = :refused_at,
      last_failed_at = :now, last_error_class = :error_class, next_try_at = :next_try_at,
      lease_owner = NULL, lease_until = CASE WHEN state = 'ACTIVE' THEN NULL ELSE :next_try_at END,
      unanswered_since = CASE WHEN :is_unspent THEN :unanswered_since ELSE unanswered_since END,
      updated_at = :now
    WHERE id = :id AND lease_owner = :owner`);
  return ({ connection, owner }: Lease, failure: RenewalFailure, now: number): void => {
    const { changes } = statement.run({
      id: connection.id,
      owner,
      error_class: failure.errorClass,
      next_try_at: now + failure.waitMs,
      is_unspent: Number(failure.isUnspent),
      unanswered_since: connection.unansweredSince ?? null,
      ...columnsFromTrouble(failure.trouble),
      now,
    });
    const isTold = failure.trouble.toldAt === connection.trouble?.toldAt;
    if (changes > 0 && !isTold && connection.state === "ACTIVE")
      enqueue("connection.refresh_failing", connection, now, failure.errorClass);
  };
}

function prepareNote(db: Database.Database) {
  const statement = db.prepare<[Record<string, unknown>]>(`
    UPDATE connections SET trouble = :trouble, refusal = :refusal, refused_at = :refused_at
    WHERE id = :id AND version = :version`);
  return ({ id, version }: Connection, trouble: Trouble | undefined): void => {
    statement.run({ id, version, ...columnsFromTrouble(trouble) });
  };
}

function prepareEnd(db: Database.Database, enqueue: EnqueueEvent) {
  const statement = db.prepare<[Record<string, unknown>]>(`
    UPDATE connections SET state = 'REAUTHORIZATION_REQUIRED',
      state_reason = CASE WHEN state = 'ACTIVE' THEN :reason ELSE state_reason END,
      previous_refresh_token = CASE WHEN previous_refresh_token IS :tried THEN NULL ELSE previous_refresh_token END,
      lease_until = CASE WHEN previous_refresh_token IS :tried THEN NULL ELSE :clock END,
      lease_owner = NULL, next_try_at = NULL, trouble = coalesce(:trouble, trouble),
      refusal = coalesce(:refusal, refusal), refused_at = coalesce(:refused_at, refused_at),
      version = version + 1, updated_at = :now
    WHERE id = :id AND version = :version AND (state = 'ACTIVE' OR previous_refresh_token IS NOT NULL)
      AND (:owner IS NULL OR lease_owner = :owner)`);
  return (connection: Connection, reason: string, options: EndOptions & Moments): boolean => {
    const { id, version, state } = connection;
    const { trouble, owner = null, tried = null, at, now } = options;
    const values = { id, version, reason, now: at, clock: now, owner, tried, ...columnsFromTrouble(trouble) };
    if (statement.run(values).changes === 0) return false;
    if (state === "ACTIVE") enqueue("connection.reauthorization_required", connection, at, reason);
    return true;
  };
}

/** Few connections have a lease, so their index is read and sorted, whatever SQLite thinks of the order by id. */
function prepareAbandoned(db: Database.Database) {
  const statement = db.prepare<[number, number, string, number], ConnectionRow>(`
    SELECT ${CONNECTION_COLUMNS} FROM connections INDEXED BY connections_leased
    WHERE lease_until IS NOT NULL AND lease_until NOT BETWEEN ? AND ? AND id > ? ORDER BY id LIMIT ?`);
  return (afterId: string, limit: number, now: number): Connection[] =>
    statement.all(now, now + MAX_LEASE_MS, afterId, limit).map(connectionFromRow);
}

/** Read in the order of its index, which holds nothing else. */
function prepareExpired(db: Database.Database) {
  const statement = db.prepare<[number, number], ConnectionRow>(`
    SELECT ${CONNECTION_COLUMNS} FROM connections INDEXED BY connections_unrenewable
    WHERE state = 'ACTIVE' AND refresh_token IS NULL AND expires_at < ? ORDER BY expires_at LIMIT ?`);
  return (endedBefore: number, limit: number): Connection[] => statement.all(endedBefore, limit).map(connectionFromRow);
}
