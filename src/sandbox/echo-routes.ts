import { isUtf8 } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import { type Account, fieldValues, InvalidParameter, integerParameter, isJsonType, mediaType } from "./grants.js";
import {
  type Answer,
  contentAnswer,
  emptyAnswer,
  errorAnswer,
  type Handler,
  jsonAnswer,
  type Route,
  type RoutedRequest,
  type SandboxRequest,
} from "./router.js";

/** A request to the resource API; its token has been judged. */
export interface ResourceRequest extends RoutedRequest {
  readonly accessToken: string;
  readonly account: Account;
}

/** Decides the answer of one resource. */
type ResourceHandler = Handler<ResourceRequest>;

/** One line of the resource API's route table. */
export type ResourceRoute = Route<ResourceRequest>;

/** A resource that is only read. */
export function getRoute(path: string, handle: ResourceHandler): ResourceRoute {
  return { path, methods: ["GET"], handle };
}

/** A resource that takes every method. */
export function anyRoute(path: string, handle: ResourceHandler): ResourceRoute {
  return { path, methods: "ANY", handle };
}

/** Whether a request may use the resource API, and as whom. */
export type Authorization =
  | { readonly result: "authorized"; readonly accessToken: string; readonly account: Account }
  | { readonly result: "refused"; readonly answer: Answer };

/** Judges the Authorization field of a request: exactly one, `Bearer`, with a valid access token (RFC 6750 section 2.1). */
export function decideAuthorization(
  rawHeaders: readonly string[],
  findAccount: (accessToken: string) => Account | undefined,
): Authorization {
  const values = fieldValues(rawHeaders, "authorization");
  if (values.length > 1) return refused(400, "invalid_request", "More than one Authorization field.");
  const accessToken = /^Bearer +(.+)$/i.exec(values[0] ?? "")?.[1];
  const account = accessToken === undefined ? undefined : findAccount(accessToken);
  if (accessToken !== undefined && account !== undefined) return { result: "authorized", accessToken, account };
  // https://www.rfc-editor.org/rfc/rfc6750#section-3.1: no error code in the challenge when nothing was presented.
  if (values.length === 0) return refused(401, undefined, "This resource takes an access token.");
  return refused(401, "invalid_token", "The access token is unknown, expired or revoked.");
}

function refused(statusCode: number, error: string | undefined, description: string): Authorization {
  const challenge = error === undefined ? 'Bearer realm="sandbox"' : `Bearer realm="sandbox", error="${error}"`;
  const answer = errorAnswer(statusCode, error ?? "unauthorized", description, ["WWW-Authenticate", challenge]);
  return { result: "refused", answer };
}

/** Resources that answer with what they received. */
export const ECHO_ROUTES: readonly ResourceRoute[] = [
  anyRoute("/echo/*", (request) => answerEcho(request, withoutCredential(request.received.rawHeaders))),
  anyRoute("/echo-headers/*", (request) => answerEcho(request, request.received.rawHeaders)),
  anyRoute("/raw-echo/*", answerRawEcho),
];

function answerEcho({ received, path, query }: ResourceRequest, rawHeaders: readonly string[]): Answer {
  const { method, target, body } = received;
  const asText = isUtf8(body);
  const echo = JSON.stringify({
    method,
    target,
    path,
    query: [...query],
    headers: pairsFromFields(rawHeaders),
    body: body.toString(asText ? "utf8" : "base64"),
    bodyEncoding: asText ? "text" : "base64",
    bodyBytes: body.length,
  });
  const json = asText && isJsonType(mediaType(received.rawHeaders)) ? validJsonText(body) : undefined;
  // Spliced, not printed again: a test sees the numbers, order and white space that arrived.
  return jsonAnswer(json === undefined ? echo : `${echo.slice(0, -1)},"json":${json}}`);
}

/** The field stays, so that a test can count it; its value goes. */
function withoutCredential(rawHeaders: readonly string[]): string[] {
  return rawHeaders.map((text, i) => (i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === "authorization" ? "" : text));
}

function pairsFromFields(rawHeaders: readonly string[]): string[][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, i) => rawHeaders.slice(2 * i, 2 * i + 2));
}

function validJsonText(body: Buffer): string | undefined {
  const text = body.toString();
  try {
    JSON.parse(text);
    return text;
  } catch {
    // Announced as JSON but not valid: the text stands in `body` all the same.
    return undefined;
  }
}

function answerRawEcho({ received }: ResourceRequest): Answer {
  const [contentType = "application/octet-stream"] = fieldValues(received.rawHeaders, "content-type");
  return contentAnswer(contentType, received.body);
}

/** A provider that gives the token away: what a relay has to redact. */
export const ECHO_TOKEN_ROUTES: readonly ResourceRoute[] = [getRoute("/echo-token", answerEchoToken)];

const FORMS: ReadonlyMap<string, (token: string) => Answer> = new Map<string, (token: string) => Answer>([
  ["raw", (token) => textAnswer(`token ${token} end`)],
  ["base64", (token) => textAnswer(`token ${Buffer.from(token).toString("base64")} end`)],
  ["urlencoded", (token) => formAnswer(`access_token=${encodeURIComponent(token)}&token_type=Bearer`)],
  // Escapes the solidus, as PHP's json_encode does: RFC 8259 section 7 allows it.
  ["json", (token) => jsonAnswer(JSON.stringify({ access_token: token }).replaceAll("/", "\\/"))],
  ["header", (token) => jsonAnswer("{}", 200, ["X-Access-Token", token])],
  ["location", (token) => emptyAnswer(302, ["Location", `/echo?access_token=${encodeURIComponent(token)}`])],
  ["reason", (token) => ({ ...jsonAnswer("{}"), reason: token })],
]);

function answerEchoToken({ query, accessToken }: ResourceRequest): Answer {
  const answer = FORMS.get(query.get("as") ?? "raw");
  if (answer === undefined) throw new InvalidParameter("as", `one of ${[...FORMS.keys()].join(", ")}`);
  return answer(accessToken);
}

function textAnswer(text: string): Answer {
  return contentAnswer("text/plain; charset=utf-8", Buffer.from(text));
}

function formAnswer(text: string): Answer {
  return contentAnswer("application/x-www-form-urlencoded", Buffer.from(text));
}

/** Answers that take their time. */
export const TIMING_ROUTES: readonly ResourceRoute[] = [getRoute("/slow", answerSlow), getRoute("/drip", answerDrip)];

/** Longer than any sensible deadline, and an end for every request. */
const MAX_WAIT_MS = 60_000;

async function answerSlow({ query }: ResourceRequest): Promise<Answer> {
  const ms = waitParameter(query, 1000);
  await wait(ms);
  return jsonAnswer(JSON.stringify({ waitedMs: ms }));
}

function answerDrip({ query }: ResourceRequest): Answer {
  const bytes = integerParameter(query, "bytes", { fallback: 10, min: 1, max: 1_000_000 });
  const ms = waitParameter(query, 100);
  return { statusCode: 200, fields: ["Content-Type", "text/plain"], body: () => drip(bytes, ms) };
}

/** One byte at once, and one more after each wait. */
async function* drip(bytes: number, ms: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from("a");
  for (let sent = 1; sent < bytes; sent++) {
    await wait(ms);
    yield Buffer.from("a");
  }
}

function waitParameter(query: URLSearchParams, fallback: number): number {
  const ms = integerParameter(query, "ms", { fallback, min: 0, max: Number.MAX_SAFE_INTEGER });
  return Math.min(ms, MAX_WAIT_MS);
}

/** Does not hold the process: while the sandbox is open, its socket does. */
function wait(ms: number): Promise<void> {
  return delay(ms, undefined, { ref: false });
}

/** Answers in the shape of three public APIs that clients of the relay call most. */
export const WELL_KNOWN_API_ROUTES: readonly ResourceRoute[] = [
  { path: "/chat.postMessage", methods: ["POST"], handle: answerChatPostMessage },
  getRoute("/youtube/v3/channels", answerYoutubeChannels),
  getRoute("/2/users/me", answerTwitterMe),
];

/** https://docs.slack.dev/reference/methods/chat.postMessage: failures come with status 200 and `ok: false`. */
function answerChatPostMessage({ received }: ResourceRequest): Answer {
  const { channel, text } = messageFromBody(received);
  if (channel === undefined) return jsonAnswer('{"ok":false,"error":"channel_not_found"}');
  if (text === undefined) return jsonAnswer('{"ok":false,"error":"no_text"}');
  const ts = "1503435956.000247";
  return jsonAnswer(JSON.stringify({ ok: true, channel, ts, message: { type: "message", text, ts } }));
}

function messageFromBody({ rawHeaders, body }: SandboxRequest): { channel: unknown; text: unknown } {
  const text = body.toString();
  if (!isJsonType(mediaType(rawHeaders))) {
    const form = new URLSearchParams(text);
    return { channel: form.get("channel") ?? undefined, text: form.get("text") ?? undefined };
  }
  const value = parseJson(text);
  return typeof value === "object" && value !== null
    ? { channel: Reflect.get(value, "channel"), text: Reflect.get(value, "text") }
    : { channel: undefined, text: undefined };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the API then sees a message without members, and answers so.
    return undefined;
  }
}

/** https://developers.google.com/youtube/v3/docs/channels/list */
function answerYoutubeChannels({ query, account }: ResourceRequest): Answer {
  if (!query.has("part")) {
    return jsonAnswer('{"error":{"code":400,"message":"Required parameter: part","status":"INVALID_ARGUMENT"}}', 400);
  }
  const items = query.get("mine") === "true" ? [{ kind: "youtube#channel", etag: "c1", id: `UC${account.id}` }] : [];
  const pageInfo = { totalResults: items.length, resultsPerPage: 5 };
  return jsonAnswer(JSON.stringify({ kind: "youtube#channelListResponse", etag: "l1", pageInfo, items }));
}

/** https://docs.x.com/x-api/users/user-lookup-me */
function answerTwitterMe({ account }: ResourceRequest): Answer {
  return jsonAnswer(JSON.stringify({ data: { id: account.id, name: account.name, username: account.login } }));
}
