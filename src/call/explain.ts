import type { Refresher } from "../oauth/refresher.js";
import { decideRefreshNeed, type RefreshNeed } from "../oauth/token-source.js";
import type { TraceContext } from "../telemetry/call-spans.js";
import { adviceOn } from "./advice.js";
import { type AllowanceOptions, type AllowedCall, judgeCall } from "./allowed-call.js";
import type { Call } from "./call.js";
import { type Explanation, MASK, UNDECIDED } from "./explanation.js";
import { outcomeFromError } from "./outcome.js";
import { upstreamRequestFrom } from "./send-with-token.js";
import { createCallTrace, type RelayLog } from "./trace.js";

/** What explaining needs: what the checks of a call need, and what tells whether a token could be refreshed. */
export interface ExplainOptions extends AllowanceOptions, Pick<Refresher, "requireRefreshable"> {
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

/**
 * Says what would become of a call, by the very checks that a call goes through: no token is opened, nobody is asked,
 * nothing is counted. Never rejects: a store that cannot be used is a refusal like others.
 *
 * What only the provider or the network can tell is not known: that includes the address which DNS gives.
 *
 * @param read gives the call; what it throws is the refusal of a call that is not well formed.
 */
export async function explainCall(options: ExplainOptions, read: () => Call): Promise<Explanation> {
  let decisions = UNDECIDED;
  let refresh: RefreshNeed | undefined;
  try {
    const call = read();
    const { rateLimiter } = options;
    const judgement = await judgeCall({ ...options, rateLimiter: { ...rateLimiter, take: rateLimiter.peek } }, call);
    decisions = judgement.decisions;
    const { allowed } = judgement;
    if (allowed === undefined) throw judgement.refusal;
    refresh = decideRefreshNeed(allowed.connection, options.now());
    if (refresh === "before") await options.requireRefreshable(allowed.connection);
    return { ...decisions, refresh, request: maskedRequestFrom(allowed), refusal: undefined };
  } catch (error) {
    const { errorType, statusCode, message } = outcomeFromError("", error, options.onFault);
    const advice = adviceOn(errorType, decisions);
    return { ...decisions, refresh, request: undefined, refusal: { errorType, statusCode, message, advice } };
  }
}

function maskedRequestFrom(allowed: Omit<AllowedCall, "trace">) {
  const { call, connection } = allowed;
  const { idToken } = connection;
  const trace = createCallTrace({ ...call, traceContext: UNKNOWN_TRACE });
  return upstreamRequestFrom({ ...allowed, trace }, connection, { access_token: MASK, id_token: idToken && MASK });
}
