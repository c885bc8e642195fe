import { isRefusedByStore } from "../model/errors.js";
import type { Sealer, Secret } from "../sealing/seal.js";
import { type Breaker, recordFailure } from "./breaker.js";
import {
  attemptOf,
  type BegunRefresh,
  type Connection,
  type ConnectionKey,
  type Lease,
  type ServedConnection,
} from "./connection.js";
import type { ClientHolds, RefreshPlace, RegisteredClient } from "./oauth-client.js";
import { misconfigured, reauthorizationRequired, refreshUnavailable } from "./refreshable.js";
import { openToken, type StoringOptions, sealTokens, storeAnswer, untilStored } from "./store-answer.js";
import { decideTokenAnswer, type TokenEndpointAnswer, type TokenVerdict } from "./token-answer.js";
import type { RefreshTarget } from "./token-endpoint.js";
import {
  type Revocation,
  refreshRequestFrom,
  revokeOrphans,
  type TokenRequest,
  TokenRequestNotSentError,
} from "./token-request.js";
import { expiresAtFrom } from "./token-response.js";
import { decideRefusal, type RefusalDecision, troubleAfter } from "./verdict.js";

/** What one refresh needs. */
export interface RefreshOptions extends StoringOptions {
  readonly sealer: Sealer;
  readonly breaker: Breaker;
  readonly clients: ClientHolds;
  /** Writes down, for operators, since when the provider refuses a client, undefined when it takes it again. */
  readonly noteClientRefused: (client: RegisteredClient, since: number | undefined) => Promise<void>;
  /** From 0 to 1. */
  readonly random: () => number;
  /**
   * Asks a token endpoint; rejects when there is no answer, with TokenRequestNotSentError when nothing was asked. Has a
   * deadline of its own.
   *
   * @param mayBegin asked in the moment before the first byte is written; false: nothing is.
   */
  readonly send: (
    target: RefreshTarget,
    request: TokenRequest,
    signal?: AbortSignal,
    mayBegin?: () => boolean,
  ) => Promise<TokenEndpointAnswer>;
  /** Longer than a token request, from its first byte on, and the time to come to that. Milliseconds. */
  readonly leaseMs: number;
  /** Begins to watch the age of a lease that is about to be asked for. */
  readonly watchAge: () => HeldLease["isFresh"];
  /** Aborts when the process cannot wait for answers any more. */
  readonly ending: AbortSignal;
  /** Where a connection is refreshed. Rejects with RelayError when there is nowhere. */
  readonly targetFor: (connection: ServedConnection) => Promise<RefreshTarget>;
  /** Called once per refresh; for logs and counters. */
  readonly onRefresh: (connection: Connection, outcome: RefreshOutcome) => void;
  /** Called with the fate of tokens that came for a deleted connection. */
  readonly onRevocation: (connection: ConnectionKey, revocation: Revocation) => void;
  /** Keeps in mind what goes on behind the refresh, and never rejects. */
  readonly track: (work: Promise<void>) => void;
}

/** A lease whose age is known. */
export interface HeldLease extends Lease, BegunRefresh {
  /**
   * Whether there is time left for a whole token request. A process that stood still since may have been overtaken, and
   * must not send the refresh token that another one has sent.
   */
  readonly isFresh: () => boolean;
  /** The refresh token that came too late once, when that is the one that is sent; sealed. */
  readonly tried?: Uint8Array | undefined;
}

/** How a refresh ended. `lost`: another one was first, or the connection is gone. */
export type RefreshOutcome = "refreshed" | "lost" | "ended" | "misconfigured" | "refused" | "failed";

/**
 * Refreshes the token of a connection whose lease we have: asks the provider once, and stores what it said before anything
 * else can fail. Rejects with RelayError REAUTHORIZATION_REQUIRED, REFRESH_UNAVAILABLE or PROVIDER_MISCONFIGURED.
 */
export async function refreshLeased(options: RefreshOptions, lease: HeldLease, target: RefreshTarget): Promise<void> {
  const refreshToken = await openRefreshToken(options, lease);
  // The previous one of a connection that was given up is the one that is tried.
  const held = lease.connection.state === "ACTIVE" ? lease : trying(lease);
  const outcome = await attempt(options, held, target, refreshToken).catch(async (error: unknown) => {
    const fault = { answer: "internal_error", isUnspent: false, refusal: undefined, retryAfterMs: 0 };
    // What the store refused is written when it can be.
    if (!isRefusedByStore(error)) await recordFailure(options, held, target, fault).catch(() => {});
    throw error;
  });
  options.onRefresh(lease.connection, outcome);
  if (outcome === "ended") throw reauthorizationRequired();
  if (outcome === "misconfigured") throw misconfigured();
  if (outcome === "refused" || outcome === "failed") throw refreshUnavailable();
}

/** The one beside the row's own is sent, and nothing is left to fall back to. */
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
      // Where none came the one that was sent stays good (RFC 6749 section 6), and the row must have that one.
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
      options.breaker.recordSuccess(target.tokenEndpoint);
      return refuse(options, lease, target, verdict);
    case "failed":
      options.breaker.recordFailure(target.tokenEndpoint, options.now());
      return fail(options, lease, target, { ...verdict, isUnspent });
  }
}

/** Where the client of a target is shown. */
export function placeOf({ tokenEndpoint, registration }: RefreshTarget): RefreshPlace {
  return { endpoint: tokenEndpoint, client: registration };
}

/** The endpoint works, and the client is the one that it knows. */
function noteTaken({ breaker, clients, noteClientRefused, track }: RefreshOptions, target: RefreshTarget): void {
  const { registration } = target;
  breaker.recordSuccess(target.tokenEndpoint);
  if (target.grant?.isOwnClient) return;
  clients.recordTaken(placeOf(target));
  // For operators alone: what cannot be written now is written with the next refresh.
  if (registration.refusedSince !== undefined) track(noteClientRefused(registration, undefined).catch(() => {}));
}

/** What the provider said, and whether a failure leaves the refresh token as good as it was. */
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
    // No answer is an answer too: the refresh token stays, and may have been spent if it was sent.
    const verdict = { kind: "failed", answer: "no_answer", retryAfterMs: 0, refreshToken: undefined } as const;
    return { verdict, isUnspent: error instanceof TokenRequestNotSentError };
  }
  const verdict = ofGrant(target, decideTokenAnswer(answer, now(), target));
  // A page of a proxy, or an answer of 500 and above, may hide a rotation that the provider performed.
  return { verdict, isUnspent: verdict.kind !== "failed" || verdict.answer === "rate_limited" };
}

/**
 * What an answer means for a connection without a refresh token of the provider's: one that comes all the same (RFC 6749
 * section 4.4.3) must not take the place of what the tokens are got for, and a client of its own that is refused is the
 * user's to mend, one of the application's the operator's, by whatever code it is refused.
 */
function ofGrant({ grant }: RefreshTarget, verdict: TokenVerdict): TokenVerdict {
  if (grant === undefined) return verdict;
  if (verdict.kind === "granted") return { ...verdict, tokens: { ...verdict.tokens, refreshToken: undefined } };
  if (verdict.kind === "failed") return { ...verdict, refreshToken: undefined };
  if (verdict.kind === "misconfigured" && grant.isOwnClient) return { ...verdict, kind: "ended" };
  return verdict.kind === "ended" && !grant.isOwnClient ? { ...verdict, kind: "misconfigured" } : verdict;
}

/**
 * Stored in the turn in which the answer came. A refresh token that came with it is never thrown away, also when the
 * store cannot take it at once: the provider may give no other.
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

/** A failure may bring a refresh token all the same: that replaces the one that was sent. */
async function fail(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  { refreshToken, ...failure }: Extract<TokenVerdict, { kind: "failed" }> & Pick<Asked, "isUnspent">,
): Promise<RefreshOutcome> {
  if (refreshToken === undefined) {
    await recordFailure(options, lease, target, { ...failure, refusal: undefined });
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
  // The one that is stored now was never sent.
  const unsent = { ...lease, connection: { ...connection, unansweredSince: undefined } };
  await recordFailure(options, unsent, target, { ...failure, isUnspent: true, refusal: undefined });
  return "failed";
}

/** Another refresh may have been first; then its tokens count. Else one that lost against it may be the good one. */
async function endOrFallBack(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  verdict: RefusedVerdict,
): Promise<RefreshOutcome> {
  const { connections, sealer, persistence } = options;
  const current = await untilStored(
    persistence,
    () => connections.find(lease.connection),
    () => true,
  );
  if (current === undefined || current.version !== lease.connection.version) return "lost";
  if (lease.previousRefreshToken === undefined) return refuse(options, lease, target, verdict);
  let previous: Secret;
  try {
    previous = openToken(sealer, lease.connection, "previous_refresh_token", lease.previousRefreshToken);
  } catch {
    // Nobody can send it.
    return refuse(options, lease, target, verdict);
  }
  // Prepared as the first one was: the store takes writes, and the lease is ours for as long as an answer may take.
  const isFresh = options.watchAge();
  if (!(await connections.extendLease(lease, options.leaseMs))) return "lost";
  return attempt(options, trying({ ...lease, isFresh }), target, previous);
}

type RefusedVerdict = Extract<TokenVerdict, { readonly words: string }>;

/** Whether it ends the connection, the other ones of its application and provider help to tell (verdict.ts). */
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
    await recordFailure(options, lease, target, { answer, refusal, isUnspent: true, retryAfterMs: 0 });
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
  { connections, now, persistence }: RefreshOptions,
  { connection }: Lease,
  { registration }: RefreshTarget,
  { kind, words }: RefusedVerdict,
): Promise<RefusalDecision> {
  const at = now();
  const before = connection.trouble?.refusal;
  const since = before?.words === words ? before.since : at;
  const evidence = await untilStored(
    persistence,
    () => connections.findEvidence(connection, words, since, at),
    () => true,
  );
  const { updatedAt: clientUpdatedAt } = registration;
  return decideRefusal({ isKnown: kind === "ended", words, before, evidence, clientUpdatedAt, now: at });
}

/** Of one connection that is refused where others are not, the words may speak all the same. */
async function refuseClient(
  options: RefreshOptions,
  lease: HeldLease,
  target: RefreshTarget,
  verdict: RefusedVerdict,
): Promise<RefreshOutcome> {
  const { breaker, clients, noteClientRefused, now } = options;
  breaker.recordSuccess(target.tokenEndpoint);
  const isOfAll = clients.recordRefused(placeOf(target), lease.connection.id, now());
  const outcome = await refuse(options, lease, target, verdict);
  if (outcome !== "refused") return outcome;
  if (isOfAll) await noteClientRefused(target.registration, now());
  return "misconfigured";
}

/** Of a connection that was given up the stored one is spent: what is left is the one that came too late. */
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
