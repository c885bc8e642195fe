import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Application } from "../applications/application.js";
import { judgeRequest, type RuleVerdict } from "../applications/call-rules.js";
import { isForProvider } from "../applications/call-token.js";
import {
  type CallerOptions,
  decideCaller,
  proofThatCounts,
  requireActive,
  requireCallerIds,
} from "../applications/caller.js";
import { LARGE_BYTES } from "../lib/chunks.js";
import { atOnce, type Turns } from "../lib/turns.js";
import { overloaded, RelayError, rateLimited } from "../model/errors.js";
import type { Connection, ConnectionStore } from "../oauth/connection.js";
import { connectAgain } from "../oauth/credentials.js";
import type { TokenSource } from "../oauth/token-source.js";
import { requireProvider } from "../providers/catalog.js";
import { requirePlaceholders } from "../providers/credential.js";
import { decideBoundOrigin, decideEgress, type EgressAllowed } from "../providers/egress.js";
import type { Provider, ProviderCatalog } from "../providers/provider.js";
import type { Capturing } from "../records/call-capture.js";
import { type Call, type CheckedCall, checkCall } from "./call.js";
import type { Deciding } from "./explanation.js";
import { requireSignable } from "./signed-form.js";
import type { CallTrace } from "./trace.js";
import type { QueryPair } from "./urlencoded.js";

/** Dependencies of the checks. */
export interface AllowanceOptions extends CallerOptions {
  readonly catalog: ProviderCatalog;
  readonly connections: Pick<ConnectionStore, "find">;
  readonly rateLimiter: RateLimiter;
  /** Creates a multipart boundary (RFC 2046 section 5.1.1). */
  readonly newBoundary: () => string;
  /** Splits the work on large payloads over turns of the event loop. */
  readonly turns: Turns;
  /** Fetches a connection's first token; undefined where no token may be fetched. */
  readonly tokens?: Pick<TokenSource, "fetched">;
}

/** What performing a call needs in addition; explaining one does not. */
export interface CaptureOptions {
  /** Undefined when no call is captured. */
  readonly capturing: Capturing | undefined;
}

/** A call that passed every check. */
export interface AllowedCall {
  readonly call: Call;
  readonly trace: CallTrace;
  readonly provider: Provider;
  readonly checked: CheckedCall;
  readonly egress: EgressAllowed;
  readonly connection: Connection;
}

/**
 * Runs every check of a call, top to bottom. All refusals come before a token is opened. Rejects with the refusal; the
 * trace holds the decisions made so far.
 */
export async function requireAllowedCall(
  options: AllowanceOptions & Partial<CaptureOptions>,
  call: Call,
  trace: CallTrace,
): Promise<AllowedCall> {
  const decided = trace.decisions;
  requireCallerIds(call);
  decided.application = await options.applications.findByPublicKey(call.publicKey);
  const application = requireActive(decided.application);
  if (application.captureUntil > 0) beginCapture(options, application, call, trace);
  requireCaller(options, application, call, decided);
  call.description.passed?.requireProofOnce();
  if (!call.memory.belongTo(application.id)) throw overloaded();
  if (application.callsPerMinute > 0) await requireRate(options, application.id, application.callsPerMinute);
  const provider = requireProvider(options, call.providerName);
  decided.provider = provider;
  const steps = checkCall(call.description, { newBoundary: options.newBoundary, memory: call.memory });
  const checked = isLarge(call) ? await options.turns.take(steps, call) : atOnce(steps);
  decided.checked = checked;
  const egress = requireEgress(call.description, provider, decided);
  requirePermission(application, call, { provider, checked, egress }, decided);
  if (provider.oauth1 !== undefined) requireSignable({ call, checked }, appendQuery(egress.path, checked.query));
  const key = { applicationId: application.id, userId: call.userId, providerName: provider.name };
  decided.connection = await options.connections.find(key);
  const stored = requireConnection(decided.connection);
  const connection = isBoundBy(egress, stored) ? stored : await fetchedBy(options, stored, call);
  decided.connection = connection;
  const misfit = findMisfit(egress, provider, connection);
  if (misfit !== undefined) {
    decided.egress = { isAllowed: false, rule: misfit.rule };
    throw misfit.refusal;
  }
  if (call.description.passed === undefined) {
    requirePlaceholders(egress.path, provider, { id_token: connection.idToken !== undefined });
  }
  const { connectionCallsPerMinute } = application;
  if (connectionCallsPerMinute > 0) await requireRate(options, rateKeyOf(connection), connectionCallsPerMinute);
  return { call, trace, provider, checked, egress, connection };
}

function isLarge({ description: { payload } }: Call): boolean {
  return payload !== undefined && payload.length > LARGE_BYTES;
}

function beginCapture(
  { capturing }: Partial<CaptureOptions>,
  application: Application,
  call: Call,
  trace: CallTrace,
): void {
  const { method, url, headers, body, payload } = call.description;
  trace.capture = capturing?.begin(application, () => ({ method, url, headers, body: body ?? payload }));
}

async function requireRate({ rateLimiter }: AllowanceOptions, key: string, callsPerMinute: number): Promise<void> {
  const waitSeconds = await rateLimiter.take(key, callsPerMinute);
  if (waitSeconds === 0) return;
  throw rateLimited(`The limit of ${callsPerMinute} calls per minute is reached.`, waitSeconds);
}

/** Not the connection's id: a user who disconnects and connects again gets another one. */
function rateKeyOf({ applicationId, providerName, userId }: Connection): string {
  return `${applicationId} ${providerName} ${userId}`;
}

function requireCaller(options: AllowanceOptions, application: Application, call: Call, decided: Deciding): void {
  const decision = decideCaller(options, application, call);
  const isAllowed = decision.result === "allow";
  decided.caller = { isAllowed, rule: isAllowed ? proofThatCounts(call.proof) : decision.rule };
  if (!isAllowed) throw new RelayError("CALLER_NOT_ALLOWED", decision.message);
}

function requireEgress({ url, passed }: Call["description"], provider: Provider, decided: Deciding): EgressAllowed {
  const decision = decideEgress(url, provider);
  const isAllowed = decision.result === "allow";
  decided.egress = { isAllowed, rule: decision.rule };
  if (!isAllowed) throw new RelayError("URL_NOT_ALLOWED", decision.message);
  if (passed !== undefined && passed.target !== decision.path) {
    decided.egress = { isAllowed: false, rule: "not_plain" };
    throw new RelayError(
      "URL_NOT_ALLOWED",
      "The path would not be sent as written; percent-encode it, and remove dot segments and the fragment.",
    );
  }
  decided.place = decision;
  return decision;
}

/** Applies the rules of application and call token to the path and query that are sent, not to the caller's url. */
function requirePermission(
  { callRules }: Pick<Application, "callRules">,
  { proof: { callToken } }: Call,
  { provider, checked, egress }: Pick<AllowedCall, "provider" | "checked" | "egress">,
  decided: Deciding,
): void {
  const names = [provider.name, ...provider.aliases];
  // The provider may have had another name when the rules were stored.
  const ruled = names.find((name) => Object.hasOwn(callRules, name));
  const ofApplication = ruled === undefined ? undefined : callRules[ruled];
  if (ofApplication === undefined && callToken === undefined) return;
  const { method, headers, query } = checked;
  const request = { method, headers, origin: egress.origin, target: appendQuery(egress.path, query) };
  const application = ofApplication && judgeRequest(ofApplication, request);
  decided.permission = { application };
  if (application?.isAllowed === false) throw notPermitted("application", method, application);
  if (callToken === undefined) return;
  if (!isForProvider(callToken.token, names)) {
    decided.permission = { application, callToken: { isAllowed: false, rule: "providers" } };
    throw new RelayError("CALL_NOT_PERMITTED", "This call token is for other providers. Use one for this provider.");
  }
  const { rules } = callToken.token;
  const verdict = rules && judgeRequest(rules, request);
  decided.permission = { application, callToken: verdict };
  if (verdict?.isAllowed === false) throw notPermitted("call_token", method, verdict);
}

const RULE_SETS = { application: "application at this provider", call_token: "call token" } as const;

function notPermitted(whose: keyof typeof RULE_SETS, method: string, { rule }: RuleVerdict): RelayError {
  const rules = `The rules of this ${RULE_SETS[whose]}`;
  return new RelayError("CALL_NOT_PERMITTED", `${rules} do not allow this ${method} request: ${rule}.`);
}

function requireConnection(connection: Connection | undefined): Connection {
  if (connection !== undefined) return connection;
  throw new RelayError(
    "INVALID_OAUTHID",
    "This user has no connection at this provider. Connect the user first; user ids match exactly, and a raw + in a query is a space.",
  );
}

/** Whether the connection has every value that decides the host. */
function isBoundBy({ parameters = {} }: EgressAllowed, { originParameters }: Connection): boolean {
  return Object.keys(parameters).every((name) => Object.hasOwn(originParameters, name));
}

/** Fetches the first token: the token answer may contain the missing values. */
async function fetchedBy({ tokens }: AllowanceOptions, connection: Connection, call: Call): Promise<Connection> {
  return tokens === undefined ? connection : tokens.fetched(connection, call);
}

/**
 * Why the call's host does not belong to the connection; undefined when it does. A connection that lacks a required
 * value was made before the provider had that value, and only the user can supply it.
 */
export function findMisfit(
  egress: EgressAllowed,
  { name, connectionValues }: Provider,
  { originParameters }: Connection,
): { readonly rule: string; readonly refusal: RelayError } | undefined {
  const decision = decideBoundOrigin(egress, originParameters);
  if (decision.result === "allow") return undefined;
  const { parameters = {} } = egress;
  const isOlder = connectionValues.some(
    (value) =>
      Object.hasOwn(parameters, value.name) && !value.isOptional && !Object.hasOwn(originParameters, value.name),
  );
  const refusal = isOlder ? connectAgain(name) : new RelayError("URL_NOT_ALLOWED", decision.message);
  return { rule: decision.rule, refusal };
}

/**
 * Appends pairs to a path that may already have a query and has no fragment. Percent-encoded as UTF-8 (RFC 3986 section
 * 2.1), a space as `%20`; a lone surrogate becomes U+FFFD, as in the URL standard.
 */
export function appendQuery(pathAndQuery: string, pairs: ReadonlyArray<QueryPair>): string {
  if (pairs.length === 0) return pathAndQuery;
  const added = pairs.map(([name, text]) => `${encode(name)}=${encode(text)}`).join("&");
  return pathAndQuery + separatorAfter(pathAndQuery) + added;
}

function separatorAfter(pathAndQuery: string): "" | "?" | "&" {
  const mark = pathAndQuery.indexOf("?");
  if (mark === -1) return "?";
  return mark === pathAndQuery.length - 1 || pathAndQuery.endsWith("&") ? "" : "&";
}

/** encodeURIComponent throws on a lone surrogate; the round trip through UTF-8 replaces it. */
function encode(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}

/** Counts calls by key, in one-minute windows that begin with the key's first call. */
export interface RateLimiter {
  /** Counts one call. Resolves to 0 if it is within the limit, else to the whole seconds until the next one may be. */
  take(key: string, callsPerMinute: number): Promise<number>;
  /** Resolves to what `take()` would, without counting. */
  peek(key: string, callsPerMinute: number): Promise<number>;
}

/** A set of counters. */
type Limiter = Pick<RateLimiterAbstract, "consume" | "get">;

const WINDOW_SECONDS = 60;

/**
 * Creates a rate limiter. Each limit in use has its own set of counters, so a key whose limit changes starts at 0.
 *
 * @param shared creates a set of counters shared with other processes; where it returns undefined, this process counts
 *   alone.
 */
export function createRateLimiter(
  shared: (points: number, durationSeconds: number) => Limiter | undefined = () => undefined,
): RateLimiter {
  const limiters = new Map<number, Limiter>();
  const limiterOf = (points: number): Limiter => {
    let limiter = limiters.get(points);
    if (limiter === undefined) {
      limiter = shared(points, WINDOW_SECONDS) ?? new RateLimiterMemory({ points, duration: WINDOW_SECONDS });
      limiters.set(points, limiter);
    }
    return limiter;
  };
  return {
    async take(key, callsPerMinute) {
      try {
        await limiterOf(callsPerMinute).consume(key);
        return 0;
      } catch (refused) {
        if (!(refused instanceof RateLimiterRes)) throw refused;
        return secondsUntil(refused);
      }
    },
    async peek(key, callsPerMinute) {
      const taken = await limiterOf(callsPerMinute).get(key);
      return taken === null || taken.remainingPoints > 0 ? 0 : secondsUntil(taken);
    },
  };
}

function secondsUntil({ msBeforeNext }: RateLimiterRes): number {
  return Math.max(1, Math.ceil(msBeforeNext / 1000));
}
