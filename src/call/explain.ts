import type { CallerProof } from "../applications/caller.js";
import { RelayError } from "../model/errors.js";
import type { Refresher } from "../oauth/refresher.js";
import { decideRefreshNeed } from "../oauth/token-source.js";
import type { TraceContext } from "../telemetry/call-spans.js";
import { adviceOn } from "./advice.js";
import { type AllowanceOptions, type AllowedCall, requireAllowedCall } from "./allowed-call.js";
import type { Call } from "./call.js";
import { type Explanation, MASK } from "./explanation.js";
import { outcomeFromError } from "./outcome.js";
import { upstreamRequestFrom } from "./send-with-token.js";
import { type CallTrace, createCallTrace, type RelayLog } from "./trace.js";

/** What explaining needs: what the checks of a call need, and what tells whether a token could be refreshed. */
export interface ExplainOptions extends Omit<AllowanceOptions, "capturing">, Pick<Refresher, "requireRefreshable"> {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onFault: RelayLog["fault"];
}

/** Every call belongs to a trace of its own, or to none: that a provider would hear of it is known, its ids are not. */
const UNKNOWN_TRACE: TraceContext = {
  traceId: "*".repeat(32),
  parentId: "*".repeat(16),
  flags: 0,
  state: undefined,
};

const NO_RULES: Rules = { caller: undefined, egress: undefined, permission: undefined };

type Rules = Pick<Explanation, "caller" | "egress" | "permission">;

/** What is learned on the way; a refusal comes with what was learned until then. */
type Found = { -readonly [Member in "application" | "provider" | "connection" | "refresh"]: Explanation[Member] };

/**
 * Says what would become of a call, by the very checks that a call goes through: no token is opened, nobody is asked,
 * nothing is counted. Never rejects: a store that cannot be used is a refusal like others.
 *
 * What only the provider or the network can tell is not known: that includes the address which DNS gives.
 *
 * @param read gives the call; what it throws is the refusal of a call that is not well formed.
 */
export async function explainCall(options: ExplainOptions, read: () => Call): Promise<Explanation> {
  const found: Found = { application: undefined, provider: undefined, connection: undefined, refresh: undefined };
  let rules: Rules = NO_RULES;
  try {
    const call = read();
    const trace = createCallTrace({ ...call, traceContext: UNKNOWN_TRACE });
    const allowed = await requireAllowedCall(noting(options, found), call, trace).catch((error: unknown) => {
      rules = rulesOf(call, trace, error);
      throw error;
    });
    rules = rulesOf(call, trace, undefined);
    found.refresh = decideRefreshNeed(allowed.connection, options.now());
    if (found.refresh === "before") await options.requireRefreshable(allowed.connection);
    return { ...found, ...rules, request: maskedRequestFrom(allowed), refusal: undefined };
  } catch (error) {
    const { errorType, statusCode, message } = outcomeFromError("", error, options.onFault);
    const advice = adviceOn(errorType, { ...found, ...rules });
    return { ...found, ...rules, request: undefined, refusal: { errorType, statusCode, message, advice } };
  }
}

/** The same checks; what they find is noted, a limit is only looked at, and nothing is captured. */
function noting(options: ExplainOptions, found: Found): AllowanceOptions {
  const { applications, catalog, connections, rateLimiter } = options;
  return {
    ...options,
    applications: {
      findByPublicKey: async (publicKey) => {
        found.application = await applications.findByPublicKey(publicKey);
        return found.application;
      },
    },
    catalog: {
      ...catalog,
      find(nameOrAlias) {
        found.provider = catalog.find(nameOrAlias);
        return found.provider;
      },
    },
    connections: {
      find: async (key) => {
        found.connection = await connections.find(key);
        return found.connection;
      },
    },
    rateLimiter: { ...rateLimiter, take: rateLimiter.peek },
    capturing: undefined,
  };
}

/** The trace of a call has one rule: that of whoever decided last. */
function rulesOf({ proof }: Call, trace: CallTrace, error: unknown): Rules {
  const { applicationId, provider, rule, permission } = trace;
  const reason = error instanceof RelayError ? error.reason : undefined;
  if (reason === "CALLER_NOT_ALLOWED") return { ...NO_RULES, caller: { isAllowed: false, rule: rule ?? "" } };
  // A private key's hash that does not open is found before the caller is judged.
  const isJudged = provider !== undefined || reason === "INVALID_PROVIDER" || reason === "RATE_LIMITED";
  if (applicationId === undefined || !isJudged) return NO_RULES;
  const egress = permission === undefined ? rule : trace.egress?.rule;
  return {
    caller: { isAllowed: true, rule: proofThatCounts(proof) },
    egress: egress === undefined ? undefined : { isAllowed: reason !== "URL_NOT_ALLOWED", rule: egress },
    permission,
  };
}

function proofThatCounts({ privateKeys, callToken, userSignature }: CallerProof): string {
  if (privateKeys.some(({ privateKey }) => privateKey !== "")) return "private-key";
  if (callToken !== undefined) return "call-token";
  return userSignature ? "user-signature" : "public-key";
}

function maskedRequestFrom(allowed: AllowedCall) {
  const { connection } = allowed;
  const { idToken } = connection;
  return upstreamRequestFrom(allowed, connection, { access_token: MASK, id_token: idToken && MASK });
}
