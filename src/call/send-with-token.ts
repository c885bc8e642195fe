import { createChunks } from "../lib/chunks.js";
import { formatError } from "../model/errors.js";
import type { Connection } from "../oauth/connection.js";
import { type Credentials, textsOf } from "../oauth/credentials.js";
import type { CurrentToken, TokenRefusal, TokenSource } from "../oauth/token-source.js";
import {
  fillPlaceholders,
  isExpirySignal,
  MAX_SIGNAL_BYTES,
  type PlaceholderTokens,
  placeCredential,
  placesOf,
} from "../providers/credential.js";
import { type HeaderPairs, hasTokens, type Provider } from "../providers/provider.js";
import type { CallCapture } from "../records/call-capture.js";
import { createRedactor, type Redactor } from "../redaction/redact.js";
import { createMemo, type Secret } from "../sealing/seal.js";
import { fieldsFromTraceContext } from "../telemetry/call-spans.js";
import { headerValue, listValue } from "../upstream/exchange.js";
import type { StreamedBody, UpstreamAnswer, UpstreamRequest } from "../upstream/request.js";
import { type AllowedCall, appendQuery, findMisfit } from "./allowed-call.js";
import { isPartOfText } from "./answer.js";
import { signedFormOf, withSignedForm } from "./signed-form.js";
import { type CallTrace, noteAnswered, noteSent, noteUnanswered, reasonOf } from "./trace.js";

/** Dependencies of {@link sendWithToken}. */
export interface TokenOptions {
  readonly tokens: TokenSource;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** How a request is sent, and how an answer is discarded when a second attempt replaces it. */
export interface Sender<Answer extends UpstreamAnswer> {
  /** Resolves once enough of the body is read to see whether the token was refused. */
  send(request: UpstreamRequest, allowed: AllowedCall): Promise<Answer>;
  discard(answer: Answer): void;
}

/** An answer, and the secrets sent to get it, which must be redacted from it. */
interface Sent<Answer> {
  readonly answer: Answer;
  readonly secrets: readonly Secret[];
}

/** A request that got an answer, or at least the head of one. */
interface Attempt<Answer> {
  /** The part of the answer that can show that the token was refused. */
  readonly heard: UpstreamAnswer;
  /** Undefined when the body was lost or cannot be read. */
  readonly answer: Answer | undefined;
  /** Why there is no answer. */
  readonly failure: unknown;
  readonly secrets: readonly Secret[];
}

/**
 * Sends the call. Sends it once more, with another token, when the provider says that the token is no longer valid
 * (threats 3.6). The token is refreshed at most once: before the first request, or after it.
 */
export async function sendWithToken<Answer extends UpstreamAnswer>(
  options: TokenOptions,
  given: AllowedCall,
  sender: Sender<Answer>,
): Promise<Sent<Answer>> {
  const { tokens, now } = options;
  const allowed = given.provider.oauth1 === undefined ? given : await withSignedForm(given);
  const { call, trace } = allowed;
  const ready = notingToken(trace, () => tokens.accessToken(allowed.connection, call));
  const used = ready instanceof Promise ? await ready : ready;
  const first = await attempt(options, allowed, used, sender);
  const refusalOf = ({ heard }: Attempt<Answer>, { connection }: CurrentToken) =>
    tokenRefusalOf(allowed.provider, heard, connection, now());
  const refusal = refusalOf(first, used);
  if (refusal === undefined) {
    const noted = first.heard.statusCode < 400 ? tokens.noteTaken(used.connection) : undefined;
    if (noted !== undefined) await noted;
    return sentBy(first);
  }
  if (used.connection !== allowed.connection) tokens.noteRefusedAgain(used.connection);
  const body = allowed.call.description.passed?.body;
  body?.hold();
  const discard = () => first.answer && sender.discard(first.answer);
  const other = await otherToken(options, allowed, used, refusal).catch((error: unknown) => {
    // The caller gets the provider's answer; the next call will find again that there is no other token.
    if (!mayRepeat(body)) return undefined;
    discard();
    throw error;
  });
  if (other === undefined || !mayRepeat(body)) {
    body?.release();
    return sentBy(first);
  }
  discard();
  const again = await attempt(options, allowed, other, sender);
  if (refusalOf(again, other) !== undefined) tokens.noteRefusedAgain(other.connection);
  return { ...sentBy(again), secrets: [...first.secrets, ...again.secrets] };
}

function sentBy<Answer>({ answer, failure, secrets }: Attempt<Answer>): Sent<Answer> {
  if (answer === undefined) throw failure;
  return { answer, secrets };
}

/** The longest announced length of a streamed body that is sent a second time. */
const MAX_REPEATED_BYTES = 64 * 1024;

/** Whether the body can be sent again: all that has arrived is still kept, and the announced length is short enough. */
function mayRepeat(body: StreamedBody | undefined): boolean {
  return body === undefined || (body.isWhole && (body.length ?? 0) <= MAX_REPEATED_BYTES);
}

async function otherToken(
  { tokens }: TokenOptions,
  { call, trace }: AllowedCall,
  { connection }: CurrentToken,
  refusal: TokenRefusal,
) {
  return notingToken(trace, () => tokens.tokenAfterRefusal(connection, call, refusal));
}

/** Sends the request once. Rejects when not even a head came. */
async function attempt<Answer extends UpstreamAnswer>(
  options: TokenOptions,
  allowed: AllowedCall,
  current: CurrentToken,
  sender: Sender<Answer>,
): Promise<Attempt<Answer>> {
  const { trace, provider } = allowed;
  // Opened only where the provider's definition lets a url contain it.
  const isNamed = provider.urlPlaceholders.has("id_token") && allowed.call.description.passed === undefined;
  const idToken = isNamed ? await options.tokens.idToken(current.connection) : undefined;
  const { egress, checked } = allowed;
  // The row may have been replaced by that of another account: its secrets go only to its own host.
  const { connection } = current;
  const misfit = connection === allowed.connection ? undefined : findMisfit(egress, provider, connection);
  if (misfit !== undefined) throw misfit.refusal;
  trace.spans?.beginRequest({ method: checked.method, origin: egress.origin, path: egress.path });
  const named = { access_token: current.token?.reveal(), id_token: idToken?.reveal() };
  const request = upstreamRequestFrom(allowed, current.connection, current, named, options.now());
  const secrets = idToken === undefined ? current.secrets : [...current.secrets, idToken];
  noteSent(trace, request);
  if (trace.capture !== undefined) captureRequest(trace.capture, request, secrets, provider);
  let answer: Answer;
  try {
    answer = await sender.send(request, allowed);
  } catch (error) {
    noteUnanswered(trace, error);
    if (trace.head === undefined) throw error;
    return { heard: { ...trace.head, body: createChunks() }, answer: undefined, failure: error, secrets };
  }
  noteAnswered(trace, answer.statusCode);
  if (!isPartOfText(checked, answer)) return { heard: answer, answer, failure: undefined, secrets };
  sender.discard(answer);
  throw formatError(
    "The provider sent only part of a text, which cannot be searched for the token. Leave out headers.Range, or whatever else asks for a part.",
  );
}

/** Captures the request as it is sent, with the secrets masked. */
function captureRequest(
  capture: CallCapture,
  { method, origin, path, headers, body, streamedBody }: UpstreamRequest,
  secrets: readonly Secret[],
  provider: Provider,
): void {
  const pairs: Array<readonly [string, string]> = [];
  for (let at = 0; at + 1 < headers.length; at += 2) pairs.push([headers[at] as string, headers[at + 1] as string]);
  const credentialFields = placesOf(provider).flatMap((place) => (place.kind === "header" ? [place.name] : []));
  const request = {
    method,
    url: origin + path,
    headers: pairs,
    // Read after the call has ended.
    get body() {
      return body ?? streamedBody?.start;
    },
  };
  capture.noteSent(request, secrets, credentialFields);
}

/**
 * A 401 with an HTML page comes from some proxy rather than the provider, if the token is younger than this.
 * Milliseconds.
 */
const MIN_AGE_MS = 30_000;

/** A refusal that says that the token is no longer valid (OAuth Problem Reporting; NetSuite writes `error`). */
const ENDED_TOKEN = /\b(?:oauth_problem|error)["']?\s*[=:]\s*["']?token_(?:expired|rejected|revoked)\b/i;
/** A refusal for another reason: the signature, the client or the clock. */
const OTHER_PROBLEM = /\boauth_problem["']?\s*[=:]/i;

/** What a refused signature means for the token; the reason may be in the challenge or in the body. */
function signedRefusalOf(challenge: string, { body }: UpstreamAnswer): TokenRefusal | "other" | undefined {
  const start = Buffer.concat(body.pieces, Math.min(body.length, MAX_SIGNAL_BYTES));
  const text = `${challenge}\n${start.toString("latin1")}`;
  if (ENDED_TOKEN.test(text)) return "ended";
  return OTHER_PROBLEM.test(text) ? "other" : undefined;
}

/**
 * Whether an answer means that the access token is no longer valid (threats 3.6): a 401, unless it says that only the
 * scope is insufficient (RFC 6750 section 3.1), or an expiry signal from the provider's definition.
 */
function tokenRefusalOf(
  provider: Provider,
  answer: UpstreamAnswer,
  { obtainedAt, expiresAt, refreshToken }: Connection,
  now: number,
): TokenRefusal | undefined {
  const isPastLifetime = expiresAt === undefined ? refreshToken !== undefined : expiresAt <= now;
  if (isExpirySignal(provider, answer.statusCode, answer.body, isPastLifetime)) return "named";
  if (answer.statusCode !== 401) return undefined;
  const challenge = listValue(answer.rawHeaders, "www-authenticate");
  if (/error="?invalid_token/i.test(challenge)) return "named";
  const signed = provider.oauth1 && signedRefusalOf(challenge, answer);
  if (signed !== undefined) return signed === "other" ? undefined : signed;
  const isPage = headerValue(answer.rawHeaders, "content-type").startsWith("text/html");
  // An API key has no scope that could be insufficient.
  if (!hasTokens(provider.kind)) return isPage ? undefined : "named";
  if (challenge !== "") return /error="?insufficient_scope/i.test(challenge) ? undefined : "likely";
  return now - obtainedAt >= MIN_AGE_MS || !isPage ? "likely" : undefined;
}

/** Returns the redactor for the secrets that were sent with a call. */
export type RedactorFor = (secrets: readonly Secret[]) => Redactor;

/**
 * Caches one redactor per list of secrets, for as long as that list is alive. Most calls send only their connection's
 * secrets, and computing the spellings of those costs more than searching a small answer for them.
 */
export function createRedactors(): RedactorFor {
  const made = createMemo<readonly Secret[], Redactor>();
  return (secrets) => {
    const known = made.get(secrets);
    if (known !== undefined) return known;
    const redactor = createRedactor(secrets.map((secret) => secret.reveal()));
    made.set(secrets, redactor);
    return redactor;
  };
}

/**
 * Sent unless the call or the provider's definition says otherwise. Answers are requested uncompressed: decompressing
 * costs more than it saves on the short way to a relay. What a provider compresses anyway is decoded within the size
 * limit.
 */
const DEFAULT_HEADERS: HeaderPairs = [
  ["accept", "*/*"],
  ["accept-encoding", "identity"],
  ["user-agent", "provider-call-relay"],
];

/**
 * Builds the request of an allowed call, with the credentials in place.
 *
 * @param tokens the values of the url's placeholders.
 * @param now when it is sent, in milliseconds since the epoch.
 */
export function upstreamRequestFrom(
  allowed: AllowedCall,
  connection: Pick<Connection, "id" | "applicationId" | "originParameters">,
  credentials: Pick<Credentials, "texts" | "sign">,
  tokens: PlaceholderTokens,
  now: number,
): UpstreamRequest {
  const { provider, checked, egress } = allowed;
  const { passed } = allowed.call.description;
  const target = passed === undefined ? fillPlaceholders(egress.path, provider, tokens) : egress.path;
  const { method, body } = checked;
  const whole = appendQuery(target, checked.query);
  const signable = { method, origin: egress.origin, path: whole, form: provider.oauth1 && signedFormOf(checked) };
  const { path, headers } = placeCredential({
    provider,
    headers: checked.headers,
    defaults: withTraceFields(DEFAULT_HEADERS, allowed),
    path: whole,
    texts: textsOf(credentials, signable, now),
    values: connection.originParameters,
  });
  return {
    origin: egress.origin,
    path,
    method,
    headers,
    body,
    streamedBody: body === undefined ? passed?.body : undefined,
    applicationId: connection.applicationId,
    connectionId: connection.id,
    allowPrivateNetwork: provider.allowPrivateNetwork,
  };
}

/** Fields of W3C Trace Context; a caller that sends one itself has its own trace. */
const TRACE_FIELDS: ReadonlySet<string> = new Set(["traceparent", "tracestate"]);

/**
 * Adds the fields with which a provider continues the call's trace. Only where its definition says so, since a trace
 * shows its recipient which calls belong together.
 */
function withTraceFields(headers: HeaderPairs, { provider, checked, trace }: AllowedCall): HeaderPairs {
  if (!provider.passTraceContext) return headers;
  if (checked.headers.some(([name]) => TRACE_FIELDS.has(name.toLowerCase()))) return headers;
  const context = trace.spans?.requestContext() ?? trace.origin.traceContext;
  return context === undefined ? headers : [...headers, ...fieldsFromTraceContext(context)];
}

/**
 * Measures the wait for a token: the time until the promise from `token` settles, or 0 when it returns no promise. A
 * second wait is added to the first.
 */
function notingToken<T>(trace: CallTrace, token: () => T | Promise<T>): T | Promise<T> {
  trace.spans?.beginToken();
  try {
    const given = token();
    if (given instanceof Promise) return notingWait(trace, given);
    trace.tokenMs ??= 0;
    trace.spans?.endToken(undefined);
    return given;
  } catch (error) {
    trace.spans?.endToken(reasonOf(error));
    throw error;
  }
}

async function notingWait<T>(trace: CallTrace, token: Promise<T>): Promise<T> {
  const startedAt = performance.now();
  try {
    const value = await token;
    trace.spans?.endToken(undefined);
    return value;
  } catch (error) {
    trace.spans?.endToken(reasonOf(error));
    throw error;
  } finally {
    trace.tokenMs = (trace.tokenMs ?? 0) + performance.now() - startedAt;
  }
}
