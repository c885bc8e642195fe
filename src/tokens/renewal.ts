import { RelayError } from "../errors.js";
import type { Breaker } from "./breaker.js";
import {
  type Connection,
  type ConnectionStore,
  type Lease,
  MAX_BACKOFF_MS,
  type RenewalFailure,
  type RenewedTokens,
} from "./connection.js";
import { connectionBinding } from "./connection-binding.js";
import { expiresAtFrom } from "./expires-at.js";
import { keepLateAnswer } from "./late-answer.js";
import { openToken } from "./open-token.js";
import type { Spool, UnstoredAnswer } from "./peers.js";
import { type Revocation, revokeOrphans } from "./revoke.js";
import type { Sealer } from "./seal.js";
import type { Secret } from "./secret.js";
import { decideTokenAnswer, type TokenEndpointAnswer, type TokenVerdict } from "./token-answer.js";
import {
  type OAuthClient,
  type RefreshHabits,
  refreshRequestFrom,
  type TokenRequest,
  TokenRequestNotSentError,
} from "./token-request.js";
import type { TokenResponse } from "./token-response.js";
import { type Persistence, untilStored } from "./until-stored.js";

/** Where and how the token of one connection is renewed. */
export interface RenewalTarget extends RefreshHabits {
  /** Where refresh requests go; the endpoint that the breaker counts. */
  readonly tokenEndpoint: string;
  /** RFC 7009; undefined: tokens cannot be revoked. */
  readonly revocationEndpoint: string | undefined;
  /** Whose tokens these are: sockets are kept apart by it where the operator wants that. */
  readonly connectionId: string;
  readonly client: OAuthClient;
  /** Seconds to assume when the answer has no expires_in; undefined: unknown. */
  readonly defaultExpiresInS: number | undefined;
  /** Dotted path of the object that holds a token response; undefined: the whole answer. */
  readonly tokenResponseMember: string | undefined;
  readonly allowPrivateNetwork: boolean;
}

/** What one renewal needs. */
export interface RenewalOptions {
  readonly connections: ConnectionStore;
  readonly sealer: Sealer;
  readonly breaker: Breaker;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  /**
   * Asks a token endpoint; rejects when there is no answer, with TokenRequestNotSentError when nothing was asked. Has a
   * deadline of its own.
   */
  readonly send: (target: RenewalTarget, request: TokenRequest, signal?: AbortSignal) => Promise<TokenEndpointAnswer>;
  /** Takes the tokens that the store refuses. */
  readonly spool: Pick<Spool, "keep" | "drop">;
  readonly persistence: Persistence;
  /** Longer than a token request and the storing of its answer, in milliseconds. */
  readonly leaseMs: number;
  /** Aborts when the process cannot wait for answers any more. */
  readonly ending: AbortSignal;
  /** Hears how each renewal ended; for logs and counters. */
  readonly onRenewal: (connection: Connection, outcome: RenewalOutcome) => void;
  /** Hears what became of tokens that came for a connection which is gone. */
  readonly onRevocation: (connection: Connection, revocation: Revocation) => void;
  /** Keeps in mind what goes on behind the renewal, and never rejects. */
  readonly track: (work: Promise<void>) => void;
}

/** How a renewal ended. `lost`: another one was first, or the connection is gone. */
export type RenewalOutcome = "renewed" | "lost" | "ended" | "misconfigured" | "refused" | "failed";

/** Backoff of one connection: doubled with each failure, at most MAX_BACKOFF_MS (threats 3.8). */
const FIRST_BACKOFF_MS = 1000;
/** A refusal in words that nobody knows may pass: it must come again over minutes before it ends the connection. */
const FIRST_REFUSED_BACKOFF_MS = 2 * 60_000;
const DAY_MS = 24 * 60 * 60 * 1000;
/** A provider that refuses this often, each time within a day of the last, means it. */
const MAX_REFUSALS = 5;
/**
 * Renews the token of a connection whose lease we have: asks the provider once, and stores what it said before anything
 * else can fail. Rejects with RelayError REAUTHORIZATION_REQUIRED, REFRESH_UNAVAILABLE or PROVIDER_MISCONFIGURED.
 */
export async function renewLeased(options: RenewalOptions, lease: Lease, target: RenewalTarget): Promise<void> {
  const outcome = await attempt(options, lease, target, await openRefreshToken(options, lease));
  options.onRenewal(lease.connection, outcome);
  if (outcome === "ended") throw reauthorizationRequired();
  if (outcome === "misconfigured") throw misconfigured();
  if (outcome === "refused" || outcome === "failed") throw refreshUnavailable();
}

async function attempt(
  options: RenewalOptions,
  lease: Lease,
  target: RenewalTarget,
  refreshToken: Secret,
): Promise<RenewalOutcome> {
  const sentAt = options.now();
  const { verdict, isUnspent } = await ask(options, target, refreshToken);
  switch (verdict.kind) {
    case "granted":
      options.breaker.recordSuccess(target.tokenEndpoint);
      return commit(options, lease, verdict.tokens, target, sentAt);
    case "ended":
      options.breaker.recordSuccess(target.tokenEndpoint);
      return endOrFallBack(options, lease, target);
    case "misconfigured":
      await options.connections.releaseLease(lease);
      return "misconfigured";
    case "refused":
      return refuse(options, lease);
    case "failed":
      options.breaker.recordFailure(target.tokenEndpoint, options.now());
      await recordFailure(options, lease, { ...verdict, errorClass: "failed", isUnspent });
      return "failed";
  }
}

/** What the provider said, and whether a failure leaves the refresh token as good as it was. */
interface Asked {
  readonly verdict: TokenVerdict;
  /** An answer of 500 and above, as one that was cut, may hide a rotation that the provider performed. */
  readonly isUnspent: boolean;
}

async function ask(options: RenewalOptions, target: RenewalTarget, refreshToken: Secret): Promise<Asked> {
  let answer: TokenEndpointAnswer;
  try {
    answer = await options.send(target, refreshRequestFrom(target.client, refreshToken, target), options.ending);
  } catch (error) {
    // No answer is an answer too: the refresh token stays, and may have been spent if it was sent.
    const verdict = { kind: "failed", retryAfterMs: 0, refreshToken: undefined } as const;
    return { verdict, isUnspent: error instanceof TokenRequestNotSentError };
  }
  const { statusCode } = answer;
  const verdict = decideTokenAnswer(answer, options.now(), target.tokenResponseMember);
  return { verdict, isUnspent: statusCode >= 300 && statusCode < 500 };
}

/**
 * Stored in the turn in which the answer came. A refresh token that came with it is never thrown away, also when the
 * store cannot take it at once: the provider may give no other.
 */
async function commit(
  options: RenewalOptions,
  lease: Lease,
  tokens: TokenResponse,
  target: RenewalTarget,
  sentAt: number,
): Promise<RenewalOutcome> {
  const { connections, sealer, now } = options;
  const { connection } = lease;
  const seal = (token: Secret, column: Parameters<typeof connectionBinding>[1]) =>
    sealer.seal(token.reveal(), connectionBinding(connection, column));
  const renewed: RenewedTokens = {
    accessToken: seal(tokens.accessToken, "access_token"),
    refreshToken: tokens.refreshToken && seal(tokens.refreshToken, "refresh_token"),
    idToken: tokens.idToken && seal(tokens.idToken, "id_token"),
    scope: tokens.scope || undefined,
    obtainedAt: sentAt,
    expiresAt: expiresAtFrom(tokens, target.defaultExpiresInS, sentAt),
  };
  if (await stored(options, { connection, tokens: renewed }, () => connections.commitRenewal(lease, renewed, now())))
    return "renewed";
  const late = await keepLateAnswer(options, lease, tokens.refreshToken);
  if (late === "orphaned") options.track(revokeOrphans(options, connection, tokens, target));
  if (typeof late === "string" || tokens.refreshToken === undefined) return "lost";
  return attempt(options, late, target, tokens.refreshToken);
}

/** Writes tokens that exist nowhere else: into the spool when the store refuses them, and into the store when it can. */
async function stored<T>(
  { spool, persistence }: RenewalOptions,
  answer: UnstoredAnswer,
  write: () => Promise<T>,
): Promise<T> {
  let isKept = false;
  const writeOrKeep = async () => {
    try {
      return await write();
    } catch (error) {
      isKept ||= spool.keep(answer);
      throw error;
    }
  };
  const result = await untilStored(persistence, writeOrKeep, () => isKept);
  if (isKept) spool.drop(answer);
  return result;
}

/** Another renewal may have been first; then its tokens count. Else one that lost against it may be the good one. */
async function endOrFallBack(options: RenewalOptions, lease: Lease, target: RenewalTarget): Promise<RenewalOutcome> {
  const { connections, sealer, now, persistence } = options;
  const current = await untilStored(
    persistence,
    () => connections.find(lease.connection),
    () => true,
  );
  if (current === undefined || current.version !== lease.connection.version) return "lost";
  if (lease.previousRefreshToken !== undefined) {
    const previous = openToken(sealer, lease.connection, "previous_refresh_token", lease.previousRefreshToken);
    // Prepared as the first one was: the store takes writes, and the lease is ours for as long as an answer may take.
    if (!(await connections.extendLease(lease, options.leaseMs))) return "lost";
    return attempt(options, { ...lease, previousRefreshToken: undefined }, target, previous);
  }
  const reason = lease.connection.unansweredSince === undefined ? "invalid_grant" : "rotation_lost_suspected";
  return (await connections.requireReauthorization(lease.connection, reason, now())) ? "ended" : "lost";
}

async function refuse(options: RenewalOptions, lease: Lease): Promise<RenewalOutcome> {
  const { lastErrorClass, lastFailedAt = 0, failCount } = lease.connection;
  const isSameTrouble = lastErrorClass === "refused" && lastFailedAt > options.now() - DAY_MS;
  const isFinal = isSameTrouble && failCount + 1 >= MAX_REFUSALS;
  if (isFinal && (await options.connections.requireReauthorization(lease.connection, "refused", options.now())))
    return "ended";
  const refused = { errorClass: "refused", retryAfterMs: 0, refreshToken: undefined, isUnspent: true };
  await recordFailure(options, lease, refused);
  return "refused";
}

interface Failure extends Pick<RenewalFailure, "errorClass" | "isUnspent"> {
  readonly retryAfterMs: number;
  readonly refreshToken: Secret | undefined;
}

async function recordFailure(
  options: RenewalOptions,
  lease: Lease,
  { errorClass, retryAfterMs, refreshToken, isUnspent }: Failure,
): Promise<void> {
  const { connections, sealer, now, random } = options;
  const { connection } = lease;
  const firstMs = errorClass === "refused" ? FIRST_REFUSED_BACKOFF_MS : FIRST_BACKOFF_MS;
  const backoffMs = Math.min(firstMs * 2 ** Math.min(connection.failCount, 16), MAX_BACKOFF_MS);
  const failure = {
    errorClass,
    isUnspent,
    trouble: { ...connection.trouble, since: connection.trouble?.since ?? now() },
    waitMs: Math.max(retryAfterMs, Math.ceil(backoffMs * (0.5 + random() / 2))),
    refreshToken: refreshToken && sealer.seal(refreshToken.reveal(), connectionBinding(connection, "refresh_token")),
  };
  const write = () => connections.recordFailure(lease, failure, now());
  if (failure.refreshToken === undefined) return write();
  const tokens = { ...connection, refreshToken: failure.refreshToken };
  await stored(options, { connection, tokens }, write);
}

async function openRefreshToken({ sealer, connections }: RenewalOptions, lease: Lease): Promise<Secret> {
  const { connection } = lease;
  try {
    if (connection.refreshToken === undefined) throw reauthorizationRequired();
    return openToken(sealer, connection, "refresh_token", connection.refreshToken);
  } catch (error) {
    await connections.releaseLease(lease);
    throw error;
  }
}

/** Only the user can help. */
export function reauthorizationRequired(): RelayError {
  return new RelayError(
    "REAUTHORIZATION_REQUIRED",
    "The provider no longer accepts this user's connection. The user must connect again.",
  );
}

/** Only the operator can help. */
export function misconfigured(): RelayError {
  return new RelayError(
    "PROVIDER_MISCONFIGURED",
    "The provider refuses the application's OAuth client. The operator must correct its client id and secret.",
  );
}

/** Nobody needs to help. @param waitMs until it may be tried again, in milliseconds. */
export function refreshUnavailable(waitMs = 0): RelayError {
  const when = waitMs > 0 ? `in ${Math.ceil(waitMs / 1000)} seconds` : "later";
  return new RelayError(
    "REFRESH_UNAVAILABLE",
    `This user's access token has ended and cannot be renewed right now. Try again ${when}.`,
  );
}
