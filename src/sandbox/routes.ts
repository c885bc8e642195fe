import { isUtf8 } from "node:buffer";
import { STATUS_CODES } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseJson } from "../lib/parse-json.js";
import { type Account, fieldValues, integerParameter, isJsonType, mediaType, parseInteger } from "./grants.js";
import { createOAuthRoutes, type OAuthServer } from "./oauth-routes.js";
import {
  type Answer,
  callRoute,
  createRouter,
  createSandboxRequest,
  emptyAnswer,
  errorAnswer,
  type Handler,
  jsonAnswer,
  parseTarget,
  type RequestLog,
  type Route,
  type RoutedRequest,
  type SandboxRequest,
} from "./router.js";

/** Adds a request to the log and decides its answer. Throws what a handler throws. */
export type Respond = (fields: Omit<SandboxRequest, "authorized">) => Answer | Promise<Answer>;

/** Combines the authorization server and the resource API in one function. @param more further resources. */
export function createRespond(server: OAuthServer, more: readonly ResourceRoute[], log: RequestLog): Respond {
  const findOAuthRoute = createRouter(createOAuthRoutes(server));
  const findResourceRoute = createRouter([...RESOURCE_ROUTES, ...more]);
  return (fields) => {
    const authorization = decideAuthorization(fields.rawHeaders, server.grants.findAccount);
    const received = createSandboxRequest({ ...fields, authorized: authorization.result === "authorized" });
    log.add(received);
    const routed = { received, ...parseTarget(fields.target) };
    const oauthRoute = findOAuthRoute(routed.path);
    if (oauthRoute !== undefined) return callRoute(oauthRoute, routed);
    if (authorization.result === "refused") return authorization.answer;
    const { accessToken, account } = authorization;
    return callRoute(findResourceRoute(routed.path), { ...routed, accessToken, account });
  };
}

/** The resource API: everything that requires an access token. */
const RESOURCE_ROUTES: readonly ResourceRoute[] = [
  getRoute("/me", answerMe),
  getRoute("/items", answerItems),
  { path: "/chat.postMessage", methods: ["POST"], handle: answerChatPostMessage },
  anyRoute("/echo/*", (request) => answerEcho(request, withoutCredential(request.received.rawHeaders))),
  anyRoute("/status/*", answerStatus),
  getRoute("/drip", answerDrip),
];

function answerMe({ account }: ResourceRequest) {
  return jsonAnswer(JSON.stringify({ sub: account.id, ...account }));
}

function answerItems({ query }: ResourceRequest) {
  const count = integerParameter(query, "count", { fallback: 3, min: 0, max: 10_000 });
  const items = Array.from({ length: count }, (_, index) => ({ id: index + 1, name: `Item ${index + 1}` }));
  return jsonAnswer(JSON.stringify(items));
}

/** Answers with the request; `rawHeaders` are the fields to show. */
export function answerEcho({ received, path, query }: ResourceRequest, rawHeaders: readonly string[]): Answer {
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
  const text = body.toString();
  const isJson = asText && isJsonType(mediaType(received.rawHeaders)) && parseJson(text) !== undefined;
  // Spliced rather than serialized again: a test sees the numbers, order and white space as received.
  return jsonAnswer(isJson ? `${echo.slice(0, -1)},"json":${text}}` : echo);
}

/** Keeps the Authorization field, so that a test can count it, but not its value. */
function withoutCredential(rawHeaders: readonly string[]): string[] {
  return rawHeaders.map((text, i) => (i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === "authorization" ? "" : text));
}

function pairsFromFields(rawHeaders: readonly string[]): string[][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, i) => rawHeaders.slice(2 * i, 2 * i + 2));
}

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

/** https://www.rfc-editor.org/rfc/rfc9110#section-15: answers that have no content. */
const WITHOUT_CONTENT = new Set([204, 205, 304]);

function answerStatus({ path, query }: ResourceRequest): Answer {
  // 1xx is never a final answer (RFC 9110 section 15.2).
  const statusCode = parseInteger(path.slice("/status/".length), "status", { min: 200, max: 999 });
  if (WITHOUT_CONTENT.has(statusCode)) return emptyAnswer(statusCode);
  const message = STATUS_CODES[statusCode] ?? "Unassigned";
  return jsonAnswer(query.get("body") ?? JSON.stringify({ status: statusCode, message }), statusCode);
}

/** Longest wait: longer than any sensible deadline, but every request ends. */
const MAX_WAIT_MS = 60_000;

function answerDrip({ query }: ResourceRequest): Answer {
  const bytes = integerParameter(query, "bytes", { fallback: 10, min: 1, max: 1_000_000 });
  const ms = integerParameter(query, "ms", { fallback: 100, min: 0, max: MAX_WAIT_MS });
  return { statusCode: 200, fields: ["Content-Type", "text/plain"], body: () => drip(bytes, ms) };
}

/** Sends one byte at once, and one more after each wait. */
async function* drip(bytes: number, ms: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from("a");
  for (let sent = 1; sent < bytes; sent++) {
    // Does not keep the process alive; the open sandbox's socket does that.
    await delay(ms, undefined, { ref: false });
    yield Buffer.from("a");
  }
}

/** A request to the resource API with a valid token. */
export interface ResourceRequest extends RoutedRequest {
  readonly accessToken: string;
  readonly account: Account;
}

/** One line of the resource API's route table. */
export type ResourceRoute = Route<ResourceRequest>;

/** A resource that is only read. */
export function getRoute(path: string, handle: Handler<ResourceRequest>): ResourceRoute {
  return { path, methods: ["GET"], handle };
}

/** A resource that takes every method. */
export function anyRoute(path: string, handle: Handler<ResourceRequest>): ResourceRoute {
  return { path, methods: "ANY", handle };
}

/** Whether a request may use the resource API, and as whom. */
type Authorization =
  | { readonly result: "authorized"; readonly accessToken: string; readonly account: Account }
  | { readonly result: "refused"; readonly answer: Answer };

/**
 * Checks the Authorization field of a request: exactly one, `Bearer`, with a valid access token (RFC 6750 section 2.1).
 */
function decideAuthorization(
  rawHeaders: readonly string[],
  findAccount: (accessToken: string) => Account | undefined,
): Authorization {
  const values = fieldValues(rawHeaders, "authorization");
  if (values.length > 1) return refused(400, "invalid_request", "More than one Authorization field.");
  const accessToken = /^Bearer +(.+)$/i.exec(values[0] ?? "")?.[1];
  const account = accessToken === undefined ? undefined : findAccount(accessToken);
  if (accessToken !== undefined && account !== undefined) return { result: "authorized", accessToken, account };
  // https://www.rfc-editor.org/rfc/rfc6750#section-3.1: no error code in the challenge without credentials.
  if (values.length === 0) return refused(401, undefined, "This resource requires an access token.");
  return refused(401, "invalid_token", "The access token is unknown, expired or revoked.");
}

function refused(statusCode: number, error: string | undefined, description: string): Authorization {
  const challenge = error === undefined ? 'Bearer realm="sandbox"' : `Bearer realm="sandbox", error="${error}"`;
  const answer = errorAnswer(statusCode, error ?? "unauthorized", description, ["WWW-Authenticate", challenge]);
  return { result: "refused", answer };
}
