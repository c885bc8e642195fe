import type { Application } from "../applications/application.js";
import { judgeRequest, type RuleVerdict } from "../applications/call-rules.js";
import { isForProvider } from "../applications/call-token.js";
import { type CallerOptions, requireActive, requireAllowedCaller, requireCallerIds } from "../applications/caller.js";
import { LARGE_BYTES } from "../lib/chunks.js";
import { atOnce, type Turns } from "../lib/turns.js";
import { RelayError } from "../model/errors.js";
import type { Connection, ConnectionStore } from "../oauth/connection.js";
import { requirePlaceholders } from "../providers/credential.js";
import { decideBoundOrigin, decideEgress, type EgressAllowed } from "../providers/egress.js";
import type { Provider, ProviderCatalog } from "../providers/provider.js";
import type { Capturing } from "../records/call-capture.js";
import { overloaded } from "./budget.js";
import { type Call, type CheckedCall, checkCall } from "./call.js";
import type { QueryPair } from "./query.js";
import type { RateLimiter } from "./rate-limiter.js";
import type { CallTrace } from "./trace.js";

/** What the checks need. */
export interface AllowanceOptions extends CallerOptions {
  readonly catalog: ProviderCatalog;
  readonly connections: Pick<ConnectionStore, "find">;
  readonly rateLimiter: RateLimiter;
  /** Undefined: no call is captured. */
  readonly capturing: Capturing | undefined;
  /** A fresh multipart boundary (RFC 2046 section 5.1.1). */
  readonly newBoundary: () => string;
  /** For payloads too large to be worked on in one go. */
  readonly turns: Turns;
}

/** A call that every check has let through. */
export interface AllowedCall {
  readonly call: Call;
  readonly trace: CallTrace;
  readonly provider: Provider;
  readonly checked: CheckedCall;
  readonly egress: EgressAllowed;
  readonly connection: Connection;
}

/** Every check of a call, top to bottom: all refusals come before a token is opened. Fails with the refusal. */
export async function requireAllowedCall(
  options: AllowanceOptions,
  call: Call,
  trace: CallTrace,
): Promise<AllowedCall> {
  requireCallerIds(call);
  const application = requireActive(await options.applications.findByPublicKey(call.publicKey));
  trace.applicationId = application.id;
  if (application.captureUntil > 0) beginCapture(options, application, call, trace);
  requireAllowedCaller(options, application, call, trace);
  if (!call.memory.belongTo(application.id)) throw overloaded();
  if (application.callsPerMinute > 0) await requireRate(options, application.id, application.callsPerMinute);
  const provider = requireProvider(options, call, trace);
  const steps = checkCall(call.description, { newBoundary: options.newBoundary, memory: call.memory });
  const checked = isLarge(call) ? await options.turns.take(steps, call) : atOnce(steps);
  trace.checked = checked;
  const egress = requireEgress(call.description.url, provider, trace);
  requirePermission(application, call, { provider, checked, egress }, trace);
  const key = { applicationId: application.id, userId: call.userId, providerName: provider.name };
  const connection = requireConnection(await options.connections.find(key));
  requireBoundOrigin(egress, connection, trace);
  requirePlaceholders(egress.path, provider, { id_token: connection.idToken !== undefined });
  const { connectionCallsPerMinute } = application;
  if (connectionCallsPerMinute > 0) await requireRate(options, connection.id, connectionCallsPerMinute);
  return { call, trace, provider, checked, egress, connection };
}

function isLarge({ description: { payload } }: Call): boolean {
  return payload !== undefined && payload.length > LARGE_BYTES;
}

function beginCapture({ capturing }: AllowanceOptions, application: Application, call: Call, trace: CallTrace): void {
  const { method, url, headers, body, payload } = call.description;
  trace.capture = capturing?.begin(application, () => ({ method, url, headers, body: body ?? payload }));
}

async function requireRate({ rateLimiter }: AllowanceOptions, key: string, callsPerMinute: number): Promise<void> {
  const waitSeconds = await rateLimiter.take(key, callsPerMinute);
  if (waitSeconds === 0) return;
  const limit = `${callsPerMinute} calls a minute`;
  throw new RelayError("RATE_LIMITED", `The limit of ${limit} is reached. Try again in ${waitSeconds} seconds.`);
}

function requireProvider({ catalog }: AllowanceOptions, call: Call, trace: CallTrace): Provider {
  const provider = catalog.find(call.providerName);
  if (provider === undefined) {
    throw new RelayError(
      "INVALID_PROVIDER",
      "There is no provider of this name. Check the provider's name in the path.",
    );
  }
  trace.provider = provider.name;
  return provider;
}

function requireEgress(url: string, provider: Provider, trace: CallTrace): EgressAllowed {
  const decision = decideEgress(url, provider);
  trace.rule = decision.rule;
  if (decision.result === "deny") throw new RelayError("URL_NOT_ALLOWED", decision.message);
  trace.egress = decision;
  return decision;
}

/** By the rules of the application and of the call token, on the path and query that go out, whatever the caller's url was. */
function requirePermission(
  { callRules }: Pick<Application, "callRules">,
  { proof: { callToken } }: Call,
  { provider, checked, egress }: Pick<AllowedCall, "provider" | "checked" | "egress">,
  trace: CallTrace,
): void {
  const ofApplication = Object.hasOwn(callRules, provider.name) ? callRules[provider.name] : undefined;
  if (ofApplication === undefined && callToken === undefined) return;
  const { method, headers, query } = checked;
  const request = { method, headers, origin: egress.origin, target: appendQuery(egress.path, query) };
  const application = ofApplication && judgeRequest(ofApplication, request);
  trace.permission = { application };
  if (application?.isAllowed === false) throw notPermitted(trace, "application", method, application);
  if (callToken === undefined) return;
  if (!isForProvider(callToken.token, [provider.name, ...provider.aliases])) {
    trace.permission = { application, callToken: { isAllowed: false, rule: "providers" } };
    trace.rule = "call_token";
    throw new RelayError(
      "CALL_NOT_PERMITTED",
      "This call token is for other providers. Ask for one for this provider.",
    );
  }
  const { rules } = callToken.token;
  const verdict = rules && judgeRequest(rules, request);
  trace.permission = { application, callToken: verdict };
  if (verdict?.isAllowed === false) throw notPermitted(trace, "call_token", method, verdict);
}

const RULE_SETS = { application: "application at this provider", call_token: "call token" } as const;

function notPermitted(
  trace: CallTrace,
  whose: keyof typeof RULE_SETS,
  method: string,
  { rule }: RuleVerdict,
): RelayError {
  trace.rule = whose;
  const rules = `The rules of this ${RULE_SETS[whose]}`;
  return new RelayError("CALL_NOT_PERMITTED", `${rules} do not let this ${method} request through: ${rule}.`);
}

function requireConnection(connection: Connection | undefined): Connection {
  if (connection !== undefined) return connection;
  throw new RelayError(
    "INVALID_OAUTHID",
    "This user has no connection at this provider. Connect the user first; user ids match exactly, and a raw + in a query is a space.",
  );
}

function requireBoundOrigin(egress: EgressAllowed, connection: Connection, trace: CallTrace): void {
  const decision = decideBoundOrigin(egress, connection.originParameters);
  if (decision.result === "allow") return;
  trace.rule = decision.rule;
  throw new RelayError("URL_NOT_ALLOWED", decision.message);
}

/**
 * Appends pairs to a path that may have a query (and has no fragment), after what is there. Percent-encoded as UTF-8
 * (RFC 3986 section 2.1), a space as `%20`; a lone surrogate becomes U+FFFD, as in the URL standard.
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

/** encodeURIComponent throws on a lone surrogate; the way through UTF-8 replaces it. */
function encode(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}
