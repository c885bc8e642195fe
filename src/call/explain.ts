import type { ErrorType } from "../model/errors.js";
import type { Connection } from "../oauth/connection.js";
import { requireKind } from "../oauth/credentials.js";
import type { Refresher } from "../oauth/refresher.js";
import { decideRefreshNeed, type RefreshNeed } from "../oauth/token-source.js";
import { placesOf } from "../providers/credential.js";
import { Secret } from "../sealing/seal.js";
import type { TraceContext } from "../telemetry/call-spans.js";
import { type AllowanceOptions, type AllowedCall, requireAllowedCall } from "./allowed-call.js";
import type { Call } from "./call.js";
import { type CallDecisions, type Explanation, MASK } from "./explanation.js";
import { outcomeFromError } from "./outcome.js";
import { upstreamRequestFrom } from "./send-with-token.js";
import { CallTrace, type RelayLog, undecided } from "./trace.js";

/** What explaining needs: the options of the checks, and a way to see whether a token could be refreshed. */
interface ExplainOptions extends AllowanceOptions, Pick<Refresher, "requireRefreshable"> {
  /** See `createSigningClientFor()`. */
  readonly signingClientFor: (connection: Connection) => Promise<unknown>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onFault: RelayLog["fault"];
}

/** A placeholder: whether a call would pass a trace to the provider is known, the ids of that trace are not. */
const UNKNOWN_TRACE: TraceContext = {
  traceId: "*".repeat(32),
  parentId: "*".repeat(16),
  flags: 0,
  state: undefined,
};

/**
 * Predicts what would happen to a call, by running the same checks. No token is opened, no request is sent, nothing is
 * counted. Never rejects: an unusable store is a refusal like any other.
 *
 * Whatever only the provider or the network decides stays unknown, including the address that DNS returns.
 *
 * @param read returns the call; what it throws becomes the refusal of a malformed call.
 */
export async function explainCall(options: ExplainOptions, read: () => Call): Promise<Explanation> {
  let decisions: CallDecisions = undecided();
  let refresh: RefreshNeed | undefined;
  try {
    const call = read();
    const { rateLimiter } = options;
    const trace = new CallTrace({ ...call, traceContext: UNKNOWN_TRACE });
    decisions = trace.decisions;
    const uncounted = { ...rateLimiter, take: rateLimiter.peek };
    const allowed = await requireAllowedCall({ ...options, rateLimiter: uncounted }, call, trace);
    requireKind(allowed.provider, allowed.connection);
    refresh = decideRefreshNeed(allowed.connection, options.now());
    if (refresh === "before") await options.requireRefreshable(allowed.connection);
    await options.signingClientFor(allowed.connection);
    return { ...decisions, refresh, request: maskedRequestFrom(allowed, options.now()), refusal: undefined };
  } catch (error) {
    const { errorType, statusCode, message } = outcomeFromError("", error, options.onFault);
    const advice = adviceOn(errorType, decisions);
    return { ...decisions, refresh, request: undefined, refusal: { errorType, statusCode, message, advice } };
  }
}

/** Replaces each credential. */
const MASKED = new Secret(MASK);

function maskedRequestFrom(allowed: AllowedCall, now: number) {
  const { connection } = allowed;
  const { idToken } = connection;
  const texts = placesOf(allowed.provider).map(() => MASKED);
  const tokens = { access_token: MASK, id_token: idToken && MASK };
  return upstreamRequestFrom(allowed, connection, { texts }, tokens, now);
}

/** What an operator can do about a refused call; empty where the caller's message is enough. Pure. */
function adviceOn(errorType: ErrorType, found: CallDecisions): string {
  switch (errorType) {
    case "INVALID_PUBLIC_KEY":
      return found.application === undefined
        ? "'relay app list' lists the public keys, 'relay app create' creates one."
        : "The application is disabled; 'relay app update PUBLIC_KEY --enable' enables it again.";
    case "CALLER_NOT_ALLOWED":
      return CALLER_ADVICE.get(found.caller?.rule ?? "") ?? "";
    case "INVALID_PROVIDER":
      return "'relay provider list' shows the providers that a command knows. RELAY_PROVIDERS adds more; the service and your terminal may have different values of it.";
    case "URL_NOT_ALLOWED":
      return urlAdvice(found);
    case "CALL_NOT_PERMITTED":
      return found.permission?.application?.isAllowed === false
        ? "'relay app show PUBLIC_KEY' shows the application's rules, 'relay app update PUBLIC_KEY --call-rules FILE' changes them."
        : "A call token cannot be changed: 'relay token create' creates one with other rules.";
    case "INVALID_OAUTHID":
      return `'relay connection list --app PUBLIC_KEY' shows who is connected. ${linkAdvice(found)}`;
    case "REAUTHORIZATION_REQUIRED":
      return linkAdvice(found);
    case "RATE_LIMITED":
      return "'relay app update PUBLIC_KEY' with --calls-per-minute or --connection-calls-per-minute sets another limit.";
    case "REFRESH_UNAVAILABLE":
      return `'relay connection show' shows how refreshes failed. ${clientAdvice(found)}`;
    case "PROVIDER_MISCONFIGURED":
      return clientAdvice(found);
    case "STORE_UNAVAILABLE":
      return "'relay config check' checks the settings, the database and the key file.";
    default:
      return "";
  }
}

const CALLER_ADVICE: ReadonlyMap<string, string> = new Map([
  ["origin", "'relay app update PUBLIC_KEY --allow-origin ORIGIN' replaces the list of browser origins."],
  ["address", "'relay app update PUBLIC_KEY --allow-address CIDR' replaces the list of client addresses."],
  [
    "private-key",
    "If the key is lost, 'relay app rotate-key PUBLIC_KEY' creates a new one and invalidates the old one.",
  ],
  [
    "user-signature",
    'Compute it with the whole private key: printf %s "$USER_ID" | openssl dgst -sha256 -hmac "$RELAY_PRIVATE_KEY".',
  ],
  [
    "proof-missing",
    "Send it: 'relay call' reads the key from RELAY_PRIVATE_KEY. 'relay app update PUBLIC_KEY --caller-auth PROOF' sets what a call must carry.",
  ],
]);

function urlAdvice({ provider, connection, egress }: CallDecisions): string {
  if (egress?.rule === "origin_not_listed" && provider !== undefined) {
    return `'relay provider show ${provider.name}' lists the origins; a definition in RELAY_PROVIDERS may list others.`;
  }
  if (egress?.rule !== "origin_not_bound" || connection === undefined) return "";
  const bound = Object.entries(connection.originParameters).map(([name, value]) => `${name}=${value}`);
  return bound.length === 0
    ? "This connection is bound to no host: the user must connect again, naming the host."
    : `This connection is bound to ${bound.join(", ")}.`;
}

function linkAdvice({ provider }: CallDecisions): string {
  const name = provider?.name ?? "PROVIDER";
  return `'relay connection link --app PUBLIC_KEY --user USER --provider ${name}' creates a link for the user to connect with.`;
}

function clientAdvice({ provider }: CallDecisions): string {
  return `'relay client put --app PUBLIC_KEY --provider ${provider?.name ?? "PROVIDER"}' stores the OAuth client that refreshes tokens.`;
}
