import { isRefusedByStore } from "../model/errors.js";
import type { Sealer, Secret } from "../sealing/seal.js";
import { type Breaker, type ClientHolds, recordFailure } from "./breaker.js";
import {
  attemptOf,
  type BegunRefresh,
  type Connection,
  type ConnectionKey,
  type Lease,
  type ServedConnection,
} from "./connection.js";
import type { RefreshPlace, RegisteredClient } from "./oauth-client.js";
import { misconfigured, reauthorizationRequired, refreshUnavailable } from "./refreshable.js";
import { openToken, type StoringOptions, sealTokens, storeAnswer, untilStored } from "./store-answer.js";
import { decideTokenAnswer, type TokenEndpointAnswer, type TokenVerdict } from "./token-answer.js";
import { type RefreshTarget, type Revocation, revokeOrphans } from "./token-endpoint.js";
import { refreshRequestFrom, type TokenRequest, TokenRequestNotSentError } from "./token-request.js";
import { expiresAtFrom } from "./token-response.js";
import { decideRefusal, type RefusalDecision, troubleAfter } from "./verdict.js";

/** What one refresh needs. */
export interface RefreshOptions extends StoringOptions {
  readonly sealer: Sealer;
  readonly breaker: Breaker;
  readonly clients: ClientHolds;
  /** Records, for operators, since when the provider refuses a client; undefined when it accepts it again. */
  readonly noteClientRefused: (client: RegisteredClient, since: number | undefined) => Promise<void>;
  /** From 0 to 1. */
  readonly random: () => number;
  /**
   * Sends a request to a token endpoint. Rejects when there is no answer, with TokenRequestNotSentError when nothing
   * was sent. Has a deadline of its own.
   *
   * @param mayBegin called right before the first byte is written; on false nothing is sent.
   */
  readonly send: (
    target: RefreshTarget,
    request: TokenRequest,
    signal?: AbortSignal,
    mayBegin?: () => boolean,
  ) => Promise<TokenEndpointAnswer>;
  /** Longer than it may take to begin a token request and to receive its answer. Milliseconds. */
  readonly leaseMs: number;
  /** Starts the clock for a lease that is about to be requested. */
  readonly watchAge: () => HeldLease["isFresh"];
  /** Aborts when the process can no longer wait for answers. */
  readonly ending: AbortSignal;
  /** Where a connection is refreshed. Rejects with RelayError when there is nowhere. */
  readonly targetFor: (connection: ServedConnection) => Promise<RefreshTarget>;
  /** Called once per refresh; for logs and counters. */
  readonly onRefresh: (connection: Connection, outcome: RefreshOutcome) => void;
  /** Called with the result of revoking tokens that came for a deleted connection. */
  readonly onRevocation: (connection: ConnectionKey, revocation: Revocation) => void;
  /** Registers background work that outlives the refresh. The work itself must never reject. */
  readonly track: (work: Promise<void>) => void;
}

/** A lease whose age is known. */
export interface HeldLease extends Lease, BegunRefresh {
  /**
   * Whether there is time left for a whole token request. A process that was suspended may have been overtaken, and
   * must not send a refresh token that another process has sent.
   */
  readonly isFresh: () => boolean;
  /** The late refresh token, when that is the one to send; sealed. */
  readonly tried?: Uint8Array | undefined;
}

/** How a refresh ended. `lost`: another refresh was first, or the connection is gone. */
export type RefreshOutcome = "refreshed" | "lost" | "ended" | "misconfigured" | "refused" | "failed";

/**
 * Refreshes the token of a connection whose lease we hold: asks the provider, and stores the answer before anything
 * else can fail. Rejects with RelayError REAUTHORIZATION_REQUIRED, REFRESH_UNAVAILABLE or PROVIDER_MISCONFIGURED.
 */
export async function refreshLeased(options: RefreshOptions, lease: HeldLease, target: RefreshTarget): Promise<void> {
  const refreshToken = await openRefreshToken(options, lease);
  // For a connection that was given up, the late refresh token is the one to try.
  const held = lease.connection.state === "ACTIVE" ? lease : trying(lease);
  const outcome = await attempt(options, held, target, refreshToken).catch(async (error: unknown) => {
    const fault = { answer: "internal_error", isUnspent: false, refusal: undefined, retryAfterMs: 0 };
    // A write that the store refused is retried in the background anyway.
    if (!isRefusedByStore(error)) await recordFailure(options, held, placeOf(target), fault).catch(() => {});
    throw error;
  });
  options.onRefresh(lease.connection, outcome);
  if (outcome === "ended") throw reauthorizationRequired();
  if (outcome === "misconfigured") throw misconfigured();
  if (outcome === "refused" || outcome === "failed") throw refreshUnavailable();
}

/** The same lease for sending the late refresh token; then there is none left to fall back to. */
function trying(lease: HeldLease): HeldLease {
  return { ...lease, previousRefreshToken: undefined, tried: lease.previousRefreshToken };
}

async function attempt(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  refreshToken: Secret,
): Promise<RefreshOutcome> {
  const sentAt = options.now();
  const { verdict, isUnspent } = await ask(options, lease, target, refreshToken);
  switch (verdict.kind) {
    case "granted":
      noteTaken(options, target);
      // Without a new refresh token, the one that was sent stays valid (RFC 6749 section 6) and is stored again.
      return commit(
        options,
        lease,
        lease.tried === undefined
          ? verdict
          : { ...verdict, tokens: { ...verdict.tokens, refreshToken: verdict.tokens.refreshToken ?? refreshToken } },
        target,
        sentAt,
      );
    case "ended":
      noteTaken(options, target);
      return endOrFallBack(options, lease, target, verdict);
    case "misconfigured":
      return refuseClient(options, lease, target, verdict);
    case "refused":
      options.breaker.recordSuccess(placeOf(target));
      return refuse(options, lease, target, verdict);
    case "failed":
      options.breaker.recordFailure(placeOf(target), options.now());
      return fail(options, lease, target, { ...verdict, isUnspent });
  }
}

/** The endpoint that a target's client is sent to, and its registration. */
export function placeOf({ tokenEndpoint, registration }: RefreshTarget): RefreshPlace {
  return { endpoint: tokenEndpoint, client: registration };
}

/** Records that the endpoint works and accepts the client. */
function noteTaken({ breaker, clients, noteClientRefused, track }: RefreshOptions, target: RefreshTarget): void {
  const { registration } = target;
  breaker.recordSuccess(placeOf(target));
  if (target.grant?.isOwnClient) return;
  clients.recordTaken(placeOf(target));
  // Only operators read it: if the write fails, the next refresh repeats it.
  if (registration.refusedSince !== undefined) track(noteClientRefused(registration, undefined).catch(() => {}));
}

/** The provider's verdict, and whether the refresh token is certainly unspent after a failure. */
interface Asked {
  readonly verdict: TokenVerdict;
  readonly isUnspent: boolean;
}

async function ask(
  { send, ending, now }: RefreshOptions,
  { isFresh }: HeldLease,
  target: RefreshTarget,
  refreshToken: Secret,
): Promise<Asked> {
  let answer: TokenEndpointAnswer;
  try {
    const post = (request: TokenRequest) => send(target, request, ending, isFresh);
    answer =
      target.grant === undefined
        ? await post(refreshRequestFrom(target.client, refreshToken, target))
        : await target.grant.ask(post, now());
  } catch (error) {
    // No answer is a failure: the refresh token stays, but may have been spent if it was sent.
    const verdict = { kind: "failed", answer: "no_answer", retryAfterMs: 0, refreshToken: undefined } as const;
    return { verdict, isUnspent: error instanceof TokenRequestNotSentError };
  }
  const verdict = ofGrant(target, decideTokenAnswer(answer, now(), target));
  // A proxy's page, or a status of 500 and above, may hide a rotation that the provider performed.
  return { verdict, isUnspent: verdict.kind !== "failed" || verdict.answer === "rate_limited" };
}

/**
 * Adapts a verdict for a connection whose tokens the relay gets for secret values. A refresh token in the answer (RFC
 * 6749 section 4.4.3) must not replace those values. A refused client is the user's to fix if it is the connection's
 * own, and the operator's if it is the application's, whatever the error code.
 */
function ofGrant({ grant }: RefreshTarget, verdict: TokenVerdict): TokenVerdict {
  if (grant === undefined) return verdict;
  if (verdict.kind === "granted") return { ...verdict, tokens: { ...verdict.tokens, refreshToken: undefined } };
  if (verdict.kind === "failed") return { ...verdict, refreshToken: undefined };
  if (verdict.kind === "misconfigured" && grant.isOwnClient) return { ...verdict, kind: "ended" };
  if (verdict.kind !== "ended" || grant.isOwnClient) return verdict;
  return { ...verdict, kind: "misconfigured", answer: "invalid_client" };
}

/**
 * Stores new tokens, in the same turn of the event loop in which the answer came. A new refresh token is never thrown
 * away, even when the store cannot take it at once: the provider may give no other.
 */
async function commit(
  options: RefreshOptions,
  lease: HeldLease,
  { tokens, told }: Pick<Extract<TokenVerdict, { kind: "granted" }>, "tokens" | "told">,
  target: RefreshTarget,
  sentAt: number,
): Promise<RefreshOutcome> {
  const { connection } = lease;
  const outcome = await storeAnswer(options, {
    connection,
    tokens: {
      ...sealTokens(options.sealer, connection, tokens),
      scope: tokens.scope || undefined,
      obtainedAt: sentAt,
      expiresAt: expiresAtFrom(tokens, target.defaultExpiresInS, sentAt),
      originParameters: target.valuesAfter(told),
      attempt: attemptOf(lease, "refreshed", "", options.now()),
    },
  });
  if (outcome === "gone") options.track(revokeOrphans(options, connection, tokens, target));
  return outcome === "stored" ? "refreshed" : "lost";
}

/** Records a failure. If the answer brought a refresh token all the same, that replaces the one that was sent. */
async function fail(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  { refreshToken, ...failure }: Extract<TokenVerdict, { kind: "failed" }> & Pick<Asked, "isUnspent">,
): Promise<RefreshOutcome> {
  if (refreshToken === undefined) {
    await recordFailure(options, lease, placeOf(target), { ...failure, refusal: undefined });
    return "failed";
  }
  const { connection } = lease;
  const came = { accessToken: undefined, refreshToken, idToken: undefined };
  const { obtainedAt } = connection;
  const sealed = sealTokens(options.sealer, connection, came);
  const tokens = { ...sealed, scope: undefined, obtainedAt, expiresAt: undefined };
  const outcome = await storeAnswer(options, { connection, tokens });
  if (outcome === "gone") options.track(revokeOrphans(options, connection, came, target));
  if (outcome !== "stored") return "lost";
  // The refresh token that is stored now was never sent.
  const unsent = { ...lease, connection: { ...connection, unansweredSince: undefined } };
  await recordFailure(options, unsent, placeOf(target), { ...failure, isUnspent: true, refusal: undefined });
  return "failed";
}

/** If another refresh was first, its tokens count. Otherwise a late refresh token beside the row's own may be valid. */
async function endOrFallBack(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  verdict: RefusedVerdict,
): Promise<RefreshOutcome> {
  const { connections, sealer } = options;
  const current = await untilRead(options, () => connections.find(lease.connection));
  if (current === undefined || current.version !== lease.connection.version) return "lost";
  if (lease.previousRefreshToken === undefined) return refuse(options, lease, target, verdict);
  let previous: Secret;
  try {
    previous = openToken(sealer, lease.connection, "previous_refresh_token", lease.previousRefreshToken);
  } catch {
    // The late refresh token does not open, so nobody can send it.
    return refuse(options, lease, target, verdict);
  }
  // As for the first request: the store accepts writes, and the lease lasts for as long as an answer may take.
  const isFresh = options.watchAge();
  if (!(await connections.extendLease(lease, options.leaseMs))) return "lost";
  return attempt(options, trying({ ...lease, isFresh }), target, previous);
}

/** Reads what a decision needs: the provider has answered, and would not answer the same again. */
function untilRead<T>({ persistence }: RefreshOptions, read: () => Promise<T>): Promise<T> {
  return untilStored(persistence, read, () => true);
}

type RefusedVerdict = Extract<TokenVerdict, { readonly words: string }>;

/** Ends the connection, or records a refusal: the other connections are evidence for the decision (verdict.ts). */
async function refuse(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  verdict: RefusedVerdict,
): Promise<RefreshOutcome> {
  const { connections, now } = options;
  const { connection } = lease;
  const { isOver, refusal } = await judge(options, lease, target, verdict);
  if (!isOver) {
    const { answer } = verdict;
    await recordFailure(options, lease, placeOf(target), { answer, refusal, isUnspent: true, retryAfterMs: 0 });
    return "refused";
  }
  const trouble = troubleAfter(connection.trouble, { refusal, clientUpdatedAt: target.registration.updatedAt }, now());
  const reason = target.grant === undefined ? reasonOf(verdict, connection) : verdict.answer;
  const attempt = attemptOf(lease, "ended", verdict.answer, now());
  const end = { trouble, owner: lease.owner, tried: lease.tried, attempt };
  return (await connections.requireReauthorization(connection, reason, now(), end)) ? "ended" : "lost";
}

function reasonOf({ kind }: RefusedVerdict, { unansweredSince }: Connection): string {
  if (kind !== "ended") return "refused";
  return unansweredSince === undefined ? "invalid_grant" : "rotation_lost_suspected";
}

async function judge(
  options: RefreshOptions,
  { connection }: Lease,
  { registration }: RefreshTarget,
  { kind, words }: RefusedVerdict,
): Promise<RefusalDecision> {
  const at = options.now();
  const before = connection.trouble?.refusal;
  const since = before?.words === words ? before.since : at;
  const evidence = await untilRead(options, () => options.connections.findEvidence(connection, words, since, at));
  const { updatedAt: clientUpdatedAt } = registration;
  return decideRefusal({ isKnown: kind === "ended", words, before, evidence, clientUpdatedAt, now: at });
}

/** Records a refused client. The cause may still be this one connection, so it is also judged as a refusal of it. */
async function refuseClient(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  verdict: RefusedVerdict,
): Promise<RefreshOutcome> {
  const { breaker, clients, noteClientRefused, now } = options;
  breaker.recordSuccess(placeOf(target));
  const isOfAll = clients.recordRefused(placeOf(target), lease.connection.id, now());
  const outcome = await refuse(options, lease, target, verdict);
  if (outcome !== "refused") return outcome;
  // Only operators read it, and the next refusal repeats it.
  if (isOfAll) await noteClientRefused(target.registration, now()).catch(() => {});
  return "misconfigured";
}

/** Opens the refresh token to send. If the connection was given up, its own is spent, and the late one is left. */
async function openRefreshToken({ sealer, connections }: RefreshOptions, lease: Lease): Promise<Secret> {
  const { connection, previousRefreshToken } = lease;
  try {
    if (connection.state !== "ACTIVE" && previousRefreshToken !== undefined)
      return openToken(sealer, connection, "previous_refresh_token", previousRefreshToken);
    if (connection.refreshToken === undefined) throw reauthorizationRequired();
    return openToken(sealer, connection, "refresh_token", connection.refreshToken);
  } catch (error) {
    await connections.releaseLease(lease);
    throw error;
  }
}
