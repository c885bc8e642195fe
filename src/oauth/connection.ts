import type { AuditEntry } from "../model/audit.js";
import type { RefusalEvidence, Trouble } from "./verdict.js";

/** A connection's life cycle; only stored states, the rest is derived from the times. */
export type ConnectionState = "ACTIVE" | "REAUTHORIZATION_REQUIRED";

/** Which connection: one per application, user and provider. Compared byte for byte. */
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
  /** As the provider named it, `Bearer` in most cases. */
  readonly tokenType: string;
  /** Granted scope as the provider wrote it (RFC 6749 section 3.3); empty when unknown. */
  readonly scope: string;
  /** Values that stand with the connection, such as `{"subdomain":"acme"}` of a templated origin; no secret ones. */
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
  /** No refresh is tried before, milliseconds since the epoch by this process's clock. */
  readonly nextTryAt: number | undefined;
  /** Until when whoever refreshes the token now has it to itself, milliseconds since the epoch by this process's clock. */
  readonly leaseUntil: number | undefined;
  /**
   * Since when the refresh token may be spent: it was about to be sent, and no answer to it was stored. Milliseconds
   * since the epoch by the store's clock; undefined when every answer is known.
   */
  readonly unansweredSince: number | undefined;
  /** Undefined while nothing is wrong. */
  readonly trouble: Trouble | undefined;
  /** When the token was refreshed last, milliseconds since the epoch; undefined for never since the user connected. */
  readonly refreshedAt?: number | undefined;
  /** Starts at 1, grows with every change of the row. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** Which connection; it need not be stored yet. */
export type ServedConnection = Pick<Connection, "id" | "applicationId" | "providerName" | "originParameters"> &
  Partial<Pick<Connection, "userId" | "tokenType" | "refreshToken">>;

/** A connection that is no more, with everything that its provider may still take. */
export interface DeletedConnection extends Connection {
  /** A refresh token that came too late; sealed. */
  readonly previousRefreshToken: Uint8Array | undefined;
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

/** A connection that may be there already. */
export interface NewerConnection {
  readonly connection: NewConnection;
  /** Since when its tokens are the newest that are known, milliseconds since the epoch; 0: not known. */
  readonly asOf: number;
  readonly audit: AuditEntry;
}

/** The right to refresh one connection's token, until the lease ends. */
export interface Lease {
  /** As it was before the lease was taken: `unansweredSince` is that of an earlier one. */
  readonly connection: Connection;
  readonly owner: string;
  /** A refresh token that another refresh of the same moment was given; sealed. */
  readonly previousRefreshToken: Uint8Array | undefined;
}

/** What of a connection the storing of new tokens needs. */
export type LeasedConnection = ConnectionKey &
  Pick<Connection, "id" | "originParameters" | "state" | "trouble" | "version">;

/** Why a token was refreshed: before its end, after it, since the provider refused it, for an operator, or for a process that is gone. */
export type RefreshCause = "due" | "expired" | "refused" | "requested" | "abandoned";

/** How a refresh ended: with a new token, with a failure that is tried again, or with the connection. */
export type AttemptOutcome = "refreshed" | "failed" | "ended";

/** One refresh, as it is kept for operators. */
export interface RefreshAttempt {
  /** When it ended, milliseconds since the epoch. */
  readonly at: number;
  readonly outcome: AttemptOutcome;
  readonly cause: RefreshCause;
  /** From asking for the lease to the provider's answer, in milliseconds. */
  readonly durationMs: number;
  /** What kind of answer came, a word and never provider text; empty for a token. */
  readonly answer: string;
}

/** A refresh that is under way. */
export interface BegunRefresh {
  readonly cause: RefreshCause;
  /** When its lease was asked for, milliseconds since the epoch. */
  readonly askedAt: number;
}

/** What is kept of a refresh that ends at `now`. Pure. */
export function attemptOf(
  { cause, askedAt }: BegunRefresh,
  outcome: AttemptOutcome,
  answer: string,
  now: number,
): RefreshAttempt {
  return { at: now, durationMs: now - askedAt, outcome, cause, answer };
}

/** New tokens as they are stored; what is undefined stays as it is. Sealed. */
export interface RefreshedTokens {
  /** Undefined where only a refresh token came, with an answer that is of no use: then no other time is stored either. */
  readonly accessToken: Uint8Array | undefined;
  readonly refreshToken: Uint8Array | undefined;
  /** The refresh token once more, sealed as the row's previous one: it is kept as that when it comes too late. */
  readonly lateRefreshToken: Uint8Array | undefined;
  readonly idToken: Uint8Array | undefined;
  readonly scope: string | undefined;
  readonly obtainedAt: number;
  readonly expiresAt: number | undefined;
  /** Values that stand with the connection from now on. */
  readonly originParameters?: Connection["originParameters"] | undefined;
  /** Kept with the tokens; undefined where no refresh has ended. */
  readonly attempt?: RefreshAttempt | undefined;
}

/**
 * What became of new tokens: `stored`; `superseded`, since another refresh was first or the connection was given up: a
 * refresh token among them is kept beside the row's own; or `gone`, since there is no connection any more. Of one that
 * was made again they are superseded, and nobody's to revoke: at many providers that would end its tokens as well, being
 * of the same user's grant.
 */
export type CommitOutcome = "stored" | "superseded" | "gone";

/** How a refresh failed, and when it may be tried again. */
export interface RefreshFailure {
  readonly errorClass: string;
  /** Whether the refresh token is known to be as good as before: it was not sent, or the provider refused to use it. */
  readonly isUnspent: boolean;
  /** Milliseconds from now. */
  readonly waitMs: number;
  /** What is known now. Where it says since when the application is told, and the row does not, an event is written. */
  readonly trouble: Trouble;
  /** Kept with the failure. */
  readonly attempt?: RefreshAttempt | undefined;
}

/** No lease is longer, in milliseconds. One that ends later was taken by a clock that stood ahead, and is over. */
export const MAX_LEASE_MS = 8 * 60_000;
/** No wait after a failure is longer, in milliseconds; the same holds for one that ends later. */
export const MAX_BACKOFF_MS = 5 * 60_000;

/** Whether a time is still to come that is never set further ahead than `maxMs`; all in milliseconds. */
export function isAhead(time: number | undefined, now: number, maxMs: number): boolean {
  return time !== undefined && time > now && time <= now + maxMs;
}

/** What else is known when a connection ends. */
export interface EndOptions {
  /** As it is now; undefined: as it was. */
  readonly trouble?: Trouble | undefined;
  /** Who must have the lease; undefined: nobody. */
  readonly owner?: string | undefined;
  /** The refresh token beside the row's own that was refused as well; one that came since is tried. Sealed. */
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

/** A connection as it is shown: whose it is, and everything but its tokens. */
export interface ConnectionSummary
  extends Omit<Connection, "accessToken" | "refreshToken" | "idToken" | "leaseUntil" | "unansweredSince" | "version"> {
  /** Of the application. */
  readonly publicKey: string;
  readonly hasRefreshToken: boolean;
}

/** Connections in a row, ordered by application id, user id and provider name, byte for byte. */
export interface ConnectionRange {
  /** Only those of this application; undefined: of all. */
  readonly applicationId: string | undefined;
  /** Of one application: only those of users whose id is this, or begins so. */
  readonly user: { readonly id: string } | { readonly prefix: string };
  /** From behind this one on, which is in the range, too; undefined: from the first one on. */
  readonly after: ConnectionKey | undefined;
  /** At most this many rows. */
  readonly limit: number;
}

/**
 * Where connections are kept. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used.
 * Leases and waits are given as lengths of time and measured by one clock, the store's: processes on machines whose
 * clocks differ agree on who has a lease.
 */
export interface ConnectionStore {
  find(key: ConnectionKey): Promise<Connection | undefined>;
  /** Inserts, or replaces the token set of the existing row, whose creation time stays and version grows;
   * the id is the new one, so that late writes to the old tokens find nothing. */
  put(connection: NewConnection, now: number, audit?: AuditEntry): Promise<Connection>;
  /**
   * Puts several in one transaction, each only where there is none whose tokens are as new. Resolves to whether each was
   * stored.
   */
  putNewer(connections: readonly NewerConnection[], now: number): Promise<readonly boolean[]>;
  list(filter: ConnectionFilter): Promise<Connection[]>;
  scan(range: ConnectionRange): Promise<ConnectionSummary[]>;
  /** At most `limit` connections of the users with this id of all applications, in order, from behind `after` on. */
  scanUser(userId: string, after: ConnectionKey | undefined, limit: number): Promise<ConnectionSummary[]>;
  /** The last refreshes of a connection since the user connected, the newest first; for operators, read by nothing else. */
  refreshesOf(key: ConnectionKey): Promise<RefreshAttempt[]>;
  /** The user of the connection with this id; undefined when there is none any more. */
  userOf(id: string): Promise<string | undefined>;
  /** Resolves to what was deleted, undefined when there was none. */
  delete(key: ConnectionKey, now: number, audit?: AuditEntry): Promise<DeletedConnection | undefined>;

  /**
   * Takes the lease of a connection that is ACTIVE and still of this version, unless somebody else has it or no refresh
   * may be tried yet, and notes in the same write that the refresh token may be spent from now on. A failed write here
   * means that no refresh is begun: what the provider would answer could not be stored either.
   *
   * A lease that has ended is no proof that its owner is gone: it may hold an answer that the store refused until now, or
   * the clock was set ahead. So whoever meets one only takes the owner's name away, with the first write that the store
   * accepts, and leaves the row to it for `leaseMs` more: an owner that lives stores its answer by then, since that asks
   * for no lease.
   *
   * A connection that was given up is leased as well where it has a refresh token that came too late.
   *
   * @param skipsWait whether it may be tried although the time to wait is not over.
   */
  takeLease(connection: Connection, owner: string, leaseMs: number, skipsWait?: boolean): Promise<Lease | undefined>;
  /**
   * Stores new tokens if the connection is still of the leased version, whether or not the lease has ended meanwhile:
   * then this answer is the newest; it is, too, if the version is lower, since then the store was restored. A connection that was given up lives again, when that is the version leased. Where
   * only a refresh token came, the lease stays.
   *
   * Tokens that come too late never overwrite newer ones. Their refresh token is kept beside the very row that was first,
   * or that was given up (threats 3.1): the provider may think that this one is the successor. Where that row says that the connection was given
   * up, this is the rotation that seemed lost: the row is left to be refreshed with it by whoever looks for abandoned
   * ones first. Whether the provider ended it over the repeated refresh token only the provider knows, so the row says
   * ACTIVE again after it was refreshed once more.
   */
  commitRefresh(connection: LeasedConnection, tokens: RefreshedTokens, now: number): Promise<CommitOutcome>;
  /** Gives the lease back after a failure; tells the application of a trouble that it has to be told of, once. */
  recordFailure(lease: Lease, failure: RefreshFailure, now: number): Promise<void>;
  /** Lets a lease that is still ours end `leaseMs` from now. Resolves to false when it is not. */
  extendLease(lease: Lease, leaseMs: number): Promise<boolean>;
  /** Ends every lease of an owner that is gone for certain, or that will not use it any more. */
  freeLeases(owner: string): Promise<void>;
  /** Gives the lease back when no refresh token was sent, or the provider has answered that it did nothing. */
  releaseLease(lease: Lease): Promise<void>;
  /**
   * Writes down what is known of tokens that were refused outside of a refresh, undefined when they work again, unless
   * the row changed.
   */
  noteTrouble(connection: Connection, trouble: Trouble | undefined): Promise<void>;
  /** What other connections show about words that this one was refused with since `since`. */
  findEvidence(connection: Connection, words: string, since: number, now: number): Promise<RefusalEvidence>;
  /**
   * The user must connect again, and is told so once. Resolves to false when the row changed or is gone, or another
   * process has the lease that `options.owner` has lost: its answer counts.
   */
  requireReauthorization(connection: Connection, reason: string, now: number, options?: EndOptions): Promise<boolean>;
  /**
   * At most `limit` connections whose lease has ended without being given back (threats 3.4), or that were given up and
   * may be refreshed after all. Ordered by id, from behind `afterId` on; the empty text for the first ones.
   */
  findAbandoned(afterId: string, limit: number): Promise<Connection[]>;
  /**
   * At most `limit` connections that are ACTIVE, cannot be refreshed, and whose token ended before `endedBefore`, in
   * milliseconds since the epoch by this process's clock; and by the store's own where it has one. Those that ended
   * first come first.
   */
  findExpired(endedBefore: number, limit: number): Promise<Connection[]>;
}
