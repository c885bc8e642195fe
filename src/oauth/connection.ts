import type { AuditEntry } from "../model/audit.js";
import { UnconfirmedWriteError } from "../model/errors.js";
import type { RefusalEvidence, Trouble } from "./verdict.js";

/** A connection's life cycle; only stored states, the rest is derived from the times. */
export type ConnectionState = "ACTIVE" | "REAUTHORIZATION_REQUIRED";

/** The key of a connection: one per application, user and provider. Compared byte for byte. */
export interface ConnectionKey {
  readonly applicationId: string;
  readonly userId: string;
  /** The provider's name, never an alias. */
  readonly providerName: string;
}

/** A user's connected account at a provider. Tokens are sealed: bytes that only sealing/seal.ts opens. */
export interface Connection extends ConnectionKey {
  readonly id: string;
  readonly state: ConnectionState;
  readonly accessToken: Uint8Array;
  readonly refreshToken: Uint8Array | undefined;
  readonly idToken: Uint8Array | undefined;
  /** As the provider named it, usually `Bearer`. */
  readonly tokenType: string;
  /** Granted scope as the provider wrote it (RFC 6749 section 3.3); empty when unknown. */
  readonly scope: string;
  /** Values stored with the connection, such as `{"subdomain":"acme"}` for a templated origin; never secret ones. */
  readonly originParameters: Readonly<Record<string, string>>;
  /** When the token was obtained, milliseconds since the epoch. */
  readonly obtainedAt: number;
  /** When the access token ends, milliseconds since the epoch; undefined when the provider did not say. */
  readonly expiresAt: number | undefined;
  /** Why the user must connect again; undefined while the state is ACTIVE. */
  readonly stateReason: string | undefined;
  /** Refreshes that failed since the last one that succeeded. */
  readonly failCount: number;
  /** When the last refresh failed, milliseconds since the epoch. */
  readonly lastFailedAt: number | undefined;
  /** How it failed: a word, never provider text. */
  readonly lastErrorClass: string | undefined;
  /** No refresh is tried before this time, milliseconds since the epoch by this process's clock. */
  readonly nextTryAt: number | undefined;
  /**
   * When the lease of the process that refreshes the token ends, milliseconds since the epoch by this process's clock.
   */
  readonly leaseUntil: number | undefined;
  /**
   * Since when the refresh token may have been spent: it was about to be sent, and no answer has been stored.
   * Milliseconds since the epoch by the store's clock; undefined when every answer is known.
   */
  readonly unansweredSince: number | undefined;
  /** Undefined while nothing is wrong. */
  readonly trouble: Trouble | undefined;
  /** When the token was last refreshed, milliseconds since the epoch; undefined if never since the user connected. */
  readonly refreshedAt?: number | undefined;
  /** Starts at 1, grows with every change of the row. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What finding the authorization server of a connection needs; the connection need not be stored yet. */
export type ServedConnection = Pick<Connection, "id" | "applicationId" | "providerName" | "originParameters"> &
  Partial<Pick<Connection, "userId" | "tokenType" | "refreshToken" | "trouble">>;

/** A deleted connection, with every token that its provider may still accept. */
export interface DeletedConnection extends Connection {
  /** A refresh token that arrived too late to become the current one; sealed. */
  readonly previousRefreshToken: Uint8Array | undefined;
}

/** Rejection of a deletion of which nobody knows whether it was done (threats A06). */
export class UnconfirmedDeletionError extends UnconfirmedWriteError {
  readonly #deleted: DeletedConnection;

  constructor(deleted: DeletedConnection, cause: UnconfirmedWriteError) {
    super(cause.message, { cause });
    this.#deleted = deleted;
  }

  /** What was deleted if it was done; no own property, so that no log shows it. */
  get deleted(): DeletedConnection {
    return this.#deleted;
  }
}

/** What is written when a connection is made or made again. */
export type NewConnection = Omit<
  Connection,
  | "version"
  | "createdAt"
  | "updatedAt"
  | "stateReason"
  | "failCount"
  | "lastFailedAt"
  | "lastErrorClass"
  | "nextTryAt"
  | "leaseUntil"
  | "unansweredSince"
  | "trouble"
  | "refreshedAt"
>;

/** A connection to import, which may exist already. */
export interface NewerConnection {
  readonly connection: NewConnection;
  /** Since when its tokens are the newest that are known, milliseconds since the epoch; 0: not known. */
  readonly asOf: number;
  readonly audit: AuditEntry;
}

/** The right to refresh one connection's token, until the lease ends. */
export interface Lease {
  /** The row as it was before the lease was taken: `unansweredSince` is that of an earlier lease. */
  readonly connection: Connection;
  readonly owner: string;
  /** A refresh token that a concurrent refresh received; sealed. */
  readonly previousRefreshToken: Uint8Array | undefined;
}

/** The part of a connection that storing new tokens needs. */
export type LeasedConnection = ConnectionKey &
  Pick<Connection, "id" | "originParameters" | "state" | "trouble" | "version">;

/**
 * Why a token was refreshed: before it expired (`due`), after it expired, because the provider refused it, for an
 * operator (`requested`), or on behalf of a process that is gone (`abandoned`).
 */
export type RefreshCause = "due" | "expired" | "refused" | "requested" | "abandoned";

/** How a refresh ended: with a new token, with a failure that is retried, or with the end of the connection. */
export type AttemptOutcome = "refreshed" | "failed" | "ended";

/** One refresh, as recorded for operators. */
export interface RefreshAttempt {
  /** When it ended, milliseconds since the epoch. */
  readonly at: number;
  readonly outcome: AttemptOutcome;
  readonly cause: RefreshCause;
  /** From the request for the lease to the provider's answer, in milliseconds. */
  readonly durationMs: number;
  /** The kind of answer: a word, never provider text; empty when tokens came. */
  readonly answer: string;
}

/** A refresh in progress. */
export interface BegunRefresh {
  readonly cause: RefreshCause;
  /** When its lease was requested, milliseconds since the epoch. */
  readonly askedAt: number;
}

/** The record of a refresh that ends at `now`. Pure. */
export function attemptOf(
  { cause, askedAt }: BegunRefresh,
  outcome: AttemptOutcome,
  answer: string,
  now: number,
): RefreshAttempt {
  return { at: now, durationMs: now - askedAt, outcome, cause, answer };
}

/** New tokens to store, sealed. An undefined member leaves the stored value unchanged, except for `expiresAt`. */
export interface RefreshedTokens {
  /** Undefined when an otherwise useless answer brought only a refresh token: then the stored times stay as well. */
  readonly accessToken: Uint8Array | undefined;
  readonly refreshToken: Uint8Array | undefined;
  /** The same refresh token, sealed for the column of the previous one, where it is kept when it comes too late. */
  readonly lateRefreshToken: Uint8Array | undefined;
  readonly idToken: Uint8Array | undefined;
  readonly scope: string | undefined;
  readonly obtainedAt: number;
  readonly expiresAt: number | undefined;
  /** New values to store with the connection. */
  readonly originParameters?: Connection["originParameters"] | undefined;
  /** Recorded with the tokens; undefined when no refresh has ended. */
  readonly attempt?: RefreshAttempt | undefined;
}

/**
 * What happened to new tokens:
 *
 * - `stored`;
 * - `superseded`: another refresh was first, or the connection was given up. A refresh token among them is kept beside
 *   the row's own;
 * - `gone`: the connection no longer exists.
 *
 * When the user has connected again meanwhile, the tokens are superseded and must not be revoked: they belong to the
 * same user's grant, and many providers would end the new tokens as well.
 */
export type CommitOutcome = "stored" | "superseded" | "gone";

/** How a refresh failed, and when it may be tried again. */
export interface RefreshFailure {
  readonly errorClass: string;
  /** Whether the refresh token is certainly unspent: it was not sent, or the provider refused to use it. */
  readonly isUnspent: boolean;
  /** Milliseconds from now. */
  readonly waitMs: number;
  /** The trouble as known now. When it has a `toldAt` and the row has none, a webhook event is written. */
  readonly trouble: Trouble;
  /** Recorded with the failure. */
  readonly attempt?: RefreshAttempt | undefined;
}

/** Longest lease, in milliseconds. One that ends later was taken while a clock was ahead, and counts as ended. */
export const MAX_LEASE_MS = 8 * 60_000;
/** Longest wait after a failure, in milliseconds; one that ends later counts as over, too. */
export const MAX_BACKOFF_MS = 5 * 60_000;

/** Whether `time` is in the future, but by at most `maxMs`: beyond that, a wrong clock set it. All in milliseconds. */
export function isAhead(time: number | undefined, now: number, maxMs: number): boolean {
  return time !== undefined && time > now && time <= now + maxMs;
}

/** What else is known when a connection ends. */
export interface EndOptions {
  /** The new trouble; undefined: it stays as it was. */
  readonly trouble?: Trouble | undefined;
  /** The owner that must hold the lease; undefined: no lease is required. */
  readonly owner?: string | undefined;
  /**
   * The late refresh token that was refused as well; if the row has another one by then, that is tried next. Sealed.
   */
  readonly tried?: Uint8Array | undefined;
  /** The refresh that it ends with; undefined: none. */
  readonly attempt?: RefreshAttempt | undefined;
}

/** A page of connections, ordered by user id and provider name. */
export interface ConnectionFilter {
  readonly applicationId: string;
  readonly userId?: string;
  /** At most this many rows. */
  readonly limit: number;
}

/** A connection as it is shown: its owner, and everything except its tokens. */
export interface ConnectionSummary
  extends Omit<Connection, "accessToken" | "refreshToken" | "idToken" | "leaseUntil" | "unansweredSince" | "version"> {
  /** Of the application. */
  readonly publicKey: string;
  readonly hasRefreshToken: boolean;
}

/** A range of connections, ordered by application id, user id and provider name, byte for byte. */
export interface ConnectionRange {
  /** Only those of this application; undefined: of all. */
  readonly applicationId: string | undefined;
  /** Within one application: only the user with this id, or users whose ids begin with this prefix. */
  readonly user: { readonly id: string } | { readonly prefix: string };
  /** Starts after this connection, which must be in the range itself; undefined: starts with the first one. */
  readonly after: ConnectionKey | undefined;
  /** At most this many rows. */
  readonly limit: number;
}

/**
 * Where connections are kept. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used.
 * Leases and waits are passed as durations and measured by one clock, the store's, so that processes on machines whose
 * clocks differ agree on who holds a lease.
 */
export interface ConnectionStore {
  find(key: ConnectionKey): Promise<Connection | undefined>;
  /**
   * Inserts a row, or replaces the tokens of the existing one. That keeps its creation time, gets the next version, and
   * takes the new id, so that late writes for the old tokens find no row.
   */
  put(connection: NewConnection, now: number, audit?: AuditEntry): Promise<Connection>;
  /**
   * Puts several in one transaction, each only if the existing row's tokens are older than `asOf`. Resolves to whether
   * each was stored.
   */
  putNewer(connections: readonly NewerConnection[], now: number): Promise<readonly boolean[]>;
  list(filter: ConnectionFilter): Promise<Connection[]>;
  scan(range: ConnectionRange): Promise<ConnectionSummary[]>;
  /** At most `limit` connections of the users with this id in all applications, in order, starting after `after`. */
  scanUser(userId: string, after: ConnectionKey | undefined, limit: number): Promise<ConnectionSummary[]>;
  /** The last refreshes of a connection since the user connected, newest first; only shown to operators. */
  refreshesOf(key: ConnectionKey): Promise<RefreshAttempt[]>;
  /** The user of the connection with this id; undefined when it no longer exists. */
  userOf(id: string): Promise<string | undefined>;
  /** Resolves to what was deleted, undefined when there was none. May reject with UnconfirmedDeletionError. */
  delete(key: ConnectionKey, now: number, audit?: AuditEntry): Promise<DeletedConnection | undefined>;

  /**
   * Takes the lease of a connection that is ACTIVE and still of this version, unless another process holds it or no
   * refresh may be tried yet. The same write notes that the refresh token may be spent from now on. If the write fails,
   * no refresh is begun: the provider's answer could not be stored either.
   *
   * An expired lease does not prove that its owner is gone: the owner may hold an answer that the store has refused so
   * far, or a clock was set ahead. So the first process that meets an expired lease only removes the owner's name, with
   * the first write that the store accepts, and leaves the row alone for another `leaseMs`. A living owner stores its
   * answer in that time, which needs no lease.
   *
   * A connection that was given up can be leased as well, if it has a refresh token that came too late.
   *
   * @param skipsWait whether to try before the wait after a failure is over.
   */
  takeLease(connection: Connection, owner: string, leaseMs: number, skipsWait?: boolean): Promise<Lease | undefined>;
  /**
   * Stores new tokens if the connection is still of the leased version, even when the lease has expired meanwhile: this
   * answer is then the newest. It is also the newest if the version is lower, since then the store was restored from a
   * backup. A connection that was given up becomes ACTIVE again if that was the version leased. When only a refresh
   * token came, the lease stays.
   *
   * Tokens that come too late never overwrite newer ones. Their refresh token is kept beside the row's own if the row
   * is the next version, or was given up (threats 3.1): the provider may consider this token to be the successor. If
   * the connection was given up, this is the rotation that seemed lost, and the next look for abandoned connections
   * refreshes the row with it. Only the provider knows whether it ended the grant over the repeated refresh token, so
   * the row becomes ACTIVE only after that refresh.
   */
  commitRefresh(connection: LeasedConnection, tokens: RefreshedTokens, now: number): Promise<CommitOutcome>;
  /** Records a failure and releases the lease; writes the webhook event about the trouble when it is due, once. */
  recordFailure(lease: Lease, failure: RefreshFailure, now: number): Promise<void>;
  /** Extends a lease that is still ours to `leaseMs` from now. Resolves to false when it is not ours any more. */
  extendLease(lease: Lease, leaseMs: number): Promise<boolean>;
  /** Ends every lease of an owner that is certainly gone, or that no longer uses its leases. */
  freeLeases(owner: string): Promise<void>;
  /** Releases the lease when no refresh token was sent, or the provider has answered that it did nothing. */
  releaseLease(lease: Lease): Promise<void>;
  /**
   * Records the trouble of tokens that were refused outside of a refresh, undefined when they work again, unless the
   * row has changed.
   */
  noteTrouble(connection: Connection, trouble: Trouble | undefined): Promise<void>;
  /** What other connections show about a refusal in these words, which this one has received since `since`. */
  findEvidence(connection: Connection, words: string, since: number, now: number): Promise<RefusalEvidence>;
  /**
   * Records that the user must connect again; the application is notified once. Resolves to false when the row has
   * changed or is gone, or when `options.owner` has lost the lease to another process, whose answer counts.
   */
  requireReauthorization(connection: Connection, reason: string, now: number, options?: EndOptions): Promise<boolean>;
  /**
   * At most `limit` connections whose lease has expired without being released (threats 3.4), or that were given up and
   * may be refreshed after all. Ordered by id, starting after `afterId`; the empty string for the first ones.
   */
  findAbandoned(afterId: string, limit: number): Promise<Connection[]>;
  /**
   * At most `limit` connections that are ACTIVE, cannot be refreshed, and whose token expired before `endedBefore`, in
   * milliseconds since the epoch by this process's clock. The token must have expired by the store's clock, too, if it
   * has one. Those that expired first come first.
   */
  findExpired(endedBefore: number, limit: number): Promise<Connection[]>;
}
