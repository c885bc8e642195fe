import type { Application } from "../applications/application.js";
import { requireCallerIds } from "../applications/caller-ids.js";
import { type CallerOptions, requireAllowedCaller, requireApplication } from "../applications/require-caller.js";
import { RelayError } from "../errors.js";
import { placeCredential } from "../providers/credential.js";
import { decideBoundOrigin, decideEgress, type EgressAllowed } from "../providers/egress.js";
import { fillPlaceholders, requirePlaceholders } from "../providers/placeholder.js";
import type { HeaderPairs, Provider, ProviderCatalog } from "../providers/provider.js";
import { causeOf } from "../telemetry/log.js";
import type { Connection, ConnectionStore } from "../tokens/connection.js";
import type { Secret } from "../tokens/secret.js";
import type { CurrentToken, TokenSource } from "../tokens/token-source.js";
import type { Upstream, UpstreamAnswer, UpstreamRequest } from "../upstream/request.js";
import { answerFromUpstream } from "./answer.js";
import type { Call, CallOrigin } from "./call.js";
import { type CheckedCall, checkCall } from "./checked-call.js";
import { type Outcome, outcomeFromAnswer, outcomeFromError } from "./outcome.js";
import { appendQuery } from "./query.js";
import type { RateLimiter } from "./rate-limiter.js";
import type { RedactorFor } from "./redactors.js";
import { isTokenRefused } from "./refusal.js";
import { type CallTrace, createCallTrace, noteAnswered, noteSent, type RelayLog } from "./trace.js";

/** What a call needs; everything is a value or an interface, so that the use case knows no protocol and no store. */
export interface RelayOptions extends CallerOptions {
  readonly catalog: ProviderCatalog;
  readonly connections: Pick<ConnectionStore, "find">;
  readonly tokens: TokenSource;
  readonly upstream: Upstream;
  readonly rateLimiter: RateLimiter;
  readonly redactorFor: RedactorFor;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A fresh multipart boundary (RFC 2046 section 5.1.1). */
  readonly newBoundary: () => string;
  readonly log: RelayLog;
}

/** The use case: one call at a provider, for one user of one application. */
export interface Relay {
  /** Never rejects: whatever happens becomes an outcome, and one log line. */
  perform(call: Call): Promise<Outcome>;
  /** The outcome of what could not even be read as a call. */
  refuse(origin: CallOrigin, error: unknown): Outcome;
}

/**
 * Sent unless the call or the provider's definition says otherwise. Answers are asked for as they are: undoing a
 * compression costs more than it saves on the short way to a relay, and what a provider compresses all the same is
 * decoded under the limit.
 */
const DEFAULT_HEADERS: HeaderPairs = [
  ["accept", "*/*"],
  ["accept-encoding", "identity"],
  ["user-agent", "provider-call-relay"],
];

/** Every protocol calls this, and nothing else, to perform a call. */
export function createRelay(options: RelayOptions): Relay {
  return {
    async perform(call) {
      const trace = createCallTrace(call);
      let outcome: Outcome;
      try {
        outcome = await relay(options, call, trace);
      } catch (error) {
        trace.cause = causeOf(error);
        outcome = outcomeFromError(call.callId, call.signal?.aborted ? callerGone() : error, options.log.fault);
      }
      options.log.call(trace, outcome);
      return outcome;
    },
    refuse(origin, error) {
      const outcome = outcomeFromError(origin.callId, error, options.log.fault);
      options.log.call(createCallTrace(origin), outcome);
      return outcome;
    },
  };
}

/** One call, top to bottom. Every refusal comes before a token is opened. */
async function relay(options: RelayOptions, call: Call, trace: CallTrace): Promise<Outcome> {
  requireCallerIds(call);
  const application = await requireApplication(options, call, trace);
  requireAllowedCaller(options, application, call, trace);
  if (application.callsPerMinute > 0) await requireRate(options, application.id, application.callsPerMinute);
  const provider = requireProvider(options, call, trace);
  const checked = checkCall(call.description, options.newBoundary);
  const egress = requireEgress(call.description.url, provider, trace);
  const connection = await requireConnection(options, application, call, provider);
  requireBoundOrigin(egress, connection, trace);
  requirePlaceholders(egress.path, provider, { id_token: connection.idToken !== undefined });
  const { connectionCallsPerMinute } = application;
  if (connectionCallsPerMinute > 0) await requireRate(options, connection.id, connectionCallsPerMinute);
  const { answer, secrets } = await sendWithToken(options, { call, trace, provider, checked, egress }, connection);
  const form = call.responseMode === "body" ? "body" : checked.answerAs;
  return outcomeFromAnswer(call.callId, await answerFromUpstream(answer, form, options.redactorFor(secrets)));
}

/** A call that every check has let through. */
interface AllowedCall {
  readonly call: Call;
  readonly trace: CallTrace;
  readonly provider: Provider;
  readonly checked: CheckedCall;
  readonly egress: EgressAllowed;
}

/** An answer, and the secrets that were sent for it: none of them may leave in it. */
interface Sent {
  readonly answer: UpstreamAnswer;
  readonly secrets: readonly Secret[];
}

/** Sends the call; once more, with another token, when the provider says that the token has ended (threats 3.6). */
async function sendWithToken(options: RelayOptions, allowed: AllowedCall, connection: Connection): Promise<Sent> {
  const { tokens, now } = options;
  const used = await tokens.accessToken(connection, allowed.call);
  const sent = await send(options, allowed, used);
  const isRefused = ({ answer }: Sent, { connection: { obtainedAt } }: CurrentToken) =>
    isTokenRefused(allowed.provider, answer, now() - obtainedAt);
  if (!isRefused(sent, used)) return sent;
  const other = await tokens.tokenAfterRefusal(used.connection, allowed.call);
  if (other === undefined) return sent;
  const again = await send(options, allowed, other);
  if (isRefused(again, other)) tokens.noteRefusedAgain(other.connection);
  return { answer: again.answer, secrets: [...sent.secrets, ...again.secrets] };
}

async function send(options: RelayOptions, allowed: AllowedCall, current: CurrentToken): Promise<Sent> {
  const { call, trace, provider, checked, egress } = allowed;
  const token = current.token.reveal();
  // Opened only where the provider's definition lets a url name it.
  const idToken = provider.urlPlaceholders.has("id_token")
    ? await options.tokens.idToken(current.connection)
    : undefined;
  const target = fillPlaceholders(egress.path, provider, { access_token: token, id_token: idToken?.reveal() });
  const { path, headers } = placeCredential({
    provider,
    headers: checked.headers,
    defaults: DEFAULT_HEADERS,
    path: appendQuery(target, checked.query),
    token,
  });
  const request: UpstreamRequest = {
    origin: egress.origin,
    path,
    method: checked.method,
    headers,
    body: checked.body,
    connectionId: current.connection.id,
    allowPrivateNetwork: provider.allowPrivateNetwork,
  };
  noteSent(trace, request);
  try {
    const answer = await options.upstream.send(request, call);
    return { answer, secrets: idToken === undefined ? [current.token] : [current.token, idToken] };
  } finally {
    noteAnswered(trace);
  }
}

async function requireRate({ rateLimiter }: RelayOptions, key: string, callsPerMinute: number): Promise<void> {
  const waitSeconds = await rateLimiter.take(key, callsPerMinute);
  if (waitSeconds === 0) return;
  const limit = `${callsPerMinute} calls a minute`;
  throw new RelayError("RATE_LIMITED", `The limit of ${limit} is reached. Try again in ${waitSeconds} seconds.`);
}

function requireProvider({ catalog }: RelayOptions, call: Call, trace: CallTrace): Provider {
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
  return decision;
}

async function requireConnection(
  { connections }: RelayOptions,
  application: Application,
  call: Call,
  provider: Provider,
): Promise<Connection> {
  const key = { applicationId: application.id, userId: call.userId, providerName: provider.name };
  const connection = await connections.find(key);
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

/** Nobody reads this row; the log line tells the story. */
function callerGone(): RelayError {
  return new RelayError("PROVIDER_TIMEOUT", "The caller ended the call before the provider answered.");
}
