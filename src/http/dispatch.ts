import { setMaxListeners } from "node:events";
import { ServerResponse } from "node:http";
import { isIPv4, isIPv6 } from "node:net";
import { parseUrl } from "../lib/parse-url.js";
import { answerPlain, cut, type HttpRequest, type HttpResponse, REQUEST_ID } from "./exchange.js";
import { createCallIds, identify } from "./identity.js";
import type { ListenerLimits } from "./limits.js";

/** Receives every request that passed {@link decideRequest}. When it throws or rejects, the answer is 500. */
export type Handler = (req: HttpRequest, res: HttpResponse) => void;

/** Called for faults worth a log line, with the place and the error, which never holds bytes of a request. */
export type OnFault = (where: string, error: unknown) => void;

/** What a request's Expect field asks for, RFC 9110 section 10.1.1. */
export type Expectation = "none" | "continue" | "unknown";

/** Passes one request to the handler, or refuses it; never throws. */
export type Dispatch = (expectation: Expectation, req: HttpRequest, res: HttpResponse) => void;

/**
 * Creates the function between a protocol's server and the handler.
 *
 * @param asksItself whether the handler of a target sends 100 Continue itself, to a client that waits for it.
 */
export function createDispatch(
  spoken: 1 | 2,
  limits: ListenerLimits,
  handler: Handler,
  onFault: OnFault,
  asksItself: (target: string) => boolean = () => false,
): Dispatch {
  const fail = (res: HttpResponse, error: unknown) => {
    onFault("handler", error);
    answerFault(res);
  };
  const acceptsHost = createHostMemory();
  const newCallId = createCallIds(Date.now);
  return (expectation, req, res) => {
    if (spoken === 1) takeOriginForm(req);
    identify(req, res, newCallId);
    const refusal = decideRequest(spoken, req.httpVersionMajor, req.rawHeaders, limits, acceptsHost);
    if (refusal !== undefined) return answer(res, refusal.status, refusal.text);
    if (expectation === "unknown") return answer(res, 417, "This expectation is not supported; leave out Expect.");
    try {
      if (expectation === "continue" && !asksItself(req.url ?? "")) res.writeContinue();
      const result: unknown = handler(req, res);
      if (result instanceof Promise) result.catch((error: unknown) => fail(res, error));
    } catch (error) {
      fail(res, error);
    }
  };
}

/** What clients send to a proxy: scheme, host, and the rest. */
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/is;

/** Rewrites a target in absolute form to path and query; its host replaces Host (RFC 9112 section 3.2.2). */
function takeOriginForm(request: HttpRequest): void {
  const { url = "", headers, rawHeaders } = request;
  const [, host, rest = ""] = (url.startsWith("/") ? undefined : ABSOLUTE_FORM.exec(url)) ?? [];
  if (host === undefined) return;
  request.url = rest.startsWith("/") ? rest : `/${rest}`;
  headers.host = host;
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (isHostField(rawHeaders[at] as string)) rawHeaders[at + 1] = host;
}

function isHostField(name: string): boolean {
  return name.length === 4 && name.toLowerCase() === "host";
}

/** Answers 500 if no head was sent yet; otherwise ends the answer so that it cannot be taken for a complete one. */
function answerFault(res: HttpResponse): void {
  if (res.writableEnded) return;
  if (!res.headersSent) answer(res, 500, "Internal error.");
  else cut(res);
}

/** Ends an exchange with a line of text. With HTTP/1 also ends the connection: what follows on it cannot be trusted. */
function answer(res: HttpResponse, status: number, text: string): void {
  // A handler that failed may have left fields that do not fit this body.
  for (const name of res.getHeaderNames()) if (name !== REQUEST_ID) res.removeHeader(name);
  if (res instanceof ServerResponse) res.shouldKeepAlive = false;
  answerPlain(res, status, text);
}

/** Answers a request on one of its own paths; otherwise does nothing and returns undefined. */
export type PathHandler = (request: HttpRequest, response: HttpResponse, path: string) => Promise<void> | undefined;

/** Paths that every port answers, in plain text. */
export const HEALTH_PATHS = { liveness: "/healthz", readiness: "/readyz" } as const;

/**
 * Passes each request to the first handler that knows its path. Answers `/healthz` and `/readyz` itself, and everything
 * else with 404. Rejects only when a handler does.
 */
export function createRouter(
  handlers: readonly PathHandler[],
  readiness: Readiness,
): (request: HttpRequest, response: HttpResponse) => Promise<void> | undefined {
  const all: readonly PathHandler[] = [...handlers, healthHandler(readiness)];
  return (request, response) => {
    const target = request.url ?? "";
    const mark = target.indexOf("?");
    const path = mark === -1 ? target : target.slice(0, mark);
    for (const handler of all) {
      const answered = handler(request, response, path);
      if (answered !== undefined) return answered;
    }
    answerPlain(response, 404, "Not found.");
    return undefined;
  };
}

/** Liveness: the process answers. Readiness: calls can be served. */
function healthHandler(readiness: Readiness): PathHandler {
  return (request, response, path) => {
    if (path !== HEALTH_PATHS.liveness && path !== HEALTH_PATHS.readiness) return undefined;
    return answerHealth(readiness, request, response, path);
  };
}

async function answerHealth(
  readiness: Readiness,
  request: HttpRequest,
  response: HttpResponse,
  path: string,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return answerPlain(response, 405, "Send a GET request.", { allow: "GET, HEAD" });
  }
  const problem = path === HEALTH_PATHS.liveness ? undefined : await readiness.problem();
  const text = problem === undefined ? "ok" : `not ready: ${problem}`;
  answerPlain(response, problem === undefined ? 200 : 503, text, { "cache-control": "no-store" });
}

/** Whether the service can take calls: the store answers and no stop has begun. */
export interface Readiness {
  /** Resolves to the reason why not, a sentence that callers may see; undefined when it is ready. */
  problem(): Promise<string | undefined>;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  stopped(signal: AbortSignal): Promise<void>;
  /** Marks the beginning of a stop: not ready from then on. */
  stop(): void;
}

/**
 * @param probe resolves to what is missing that every call needs, a sentence that callers may see; else to undefined.
 */
export function createReadiness(probe: () => Promise<string | undefined>): Readiness {
  const stopping = new AbortController();
  // Each Watch of the health service listens to it.
  setMaxListeners(0, stopping.signal);
  return {
    problem: async () => {
      const problem = await probe();
      return stopping.signal.aborted ? "The relay is stopping." : problem;
    },
    stopped: (signal) =>
      new Promise((resolve) => {
        if (signal.aborted || stopping.signal.aborted) return resolve();
        const done = () => {
          signal.removeEventListener("abort", done);
          stopping.signal.removeEventListener("abort", done);
          resolve();
        };
        signal.addEventListener("abort", done);
        stopping.signal.addEventListener("abort", done);
      }),
    stop: () => stopping.abort(),
  };
}

/** An answer instead of the handler's. `text` is sent to the client. */
interface Refusal {
  readonly status: 400 | 431 | 501;
  readonly text: string;
}

const VERSION: Refusal = { status: 400, text: "This HTTP version is not supported; send HTTP/1.1 or HTTP/2." };
const TOO_MANY: Refusal = { status: 431, text: "The request has too many header fields; send fewer." };
const TOO_LARGE: Refusal = { status: 431, text: "The request's header fields are too large; send less." };

/**
 * Checks what every request must satisfy before any handler sees it; see {@link decideHost} for `acceptsHost`.
 *
 * @param spoken major version of the protocol the connection speaks. An HTTP/1 parser also accepts request lines
 *   of HTTP/0.9 and HTTP/2.0, which have no meaning there (RFC 9110 section 2.5).
 * @param rawHeaders names and values in turn, as received.
 * @returns the refusal, or undefined when the request may pass.
 */
export function decideRequest(
  spoken: 1 | 2,
  httpVersionMajor: number,
  rawHeaders: readonly string[],
  { maxHeaders, maxHeaderBytes }: Pick<ListenerLimits, "maxHeaders" | "maxHeaderBytes">,
  acceptsHost?: (value: string) => boolean,
): Refusal | undefined {
  if (httpVersionMajor !== spoken) return VERSION;
  // Counts the raw headers: the parser silently drops fields over its own limit from `headers`.
  if (rawHeaders.length > maxHeaders * 2) return TOO_MANY;
  // The HTTP/1 parser has counted already. With HTTP/2 the limit binds a client only after it has read our settings.
  if (spoken === 2 && fieldBytes(rawHeaders) > maxHeaderBytes) return TOO_LARGE;
  const problem = decideHost(rawHeaders, acceptsHost);
  if (problem !== undefined) return { status: 400, text: problem };
  // Node.js refuses the field on HTTP/2 (RFC 9113 section 8.2.2).
  return spoken === 1 ? decideTransferCoding(rawHeaders) : undefined;
}

/** Size of a field section as RFC 9113 section 6.5.2 defines it: name, value and 32 bytes for each field. */
function fieldBytes(rawHeaders: readonly string[]): number {
  let bytes = rawHeaders.length * 16;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/**
 * Checks the addressee of a request: exactly one Host (HTTP/1), or :authority and at most one Host with the same value
 * (HTTP/2), and a value that `accepts` accepts. Pure if `accepts` is.
 *
 * RFC 9112 section 3.2, RFC 9113 section 8.3.1.
 *
 * @param rawHeaders names and values in turn, as received.
 * @param accepts checks the value: {@link isHost}, or a function from {@link createHostMemory}.
 * @returns what is wrong, as a sentence for the client, or undefined.
 */
export function decideHost(
  rawHeaders: readonly string[],
  accepts: (value: string) => boolean = isHost,
): string | undefined {
  let host: string | undefined;
  let authority: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name === ":authority") authority = rawHeaders[index + 1];
    else if (isHostField(name)) {
      if (host !== undefined) return "The request has more than one Host; send one.";
      host = rawHeaders[index + 1];
    }
  }
  const addressee = authority ?? host;
  if (addressee === undefined) return "The request has no Host; send one.";
  if (host !== undefined && authority !== undefined && host.toLowerCase() !== authority.toLowerCase())
    return "Host and :authority differ; send one of them.";
  return accepts(addressee) ? undefined : "Host is not a name or address with an optional port.";
}

/**
 * Letters, digits, `-`, `.` and `_`, of which names in use consist, or an address in brackets; then an optional port.
 */
const HOST = /^(?:([\w.-]{1,255})|\[([\da-f:.]{2,45})\])(?::(\d{0,5}))?$/i;
/** Names that the URL parser takes for an IPv4 address or for Punycode, and may then reject. */
const SPECIAL_NAME = /(?:^|\.)(?:\d[^.]*\.?$|xn--)/i;

/**
 * Whether a value is a host that `new URL()` accepts after `http://`, however it normalizes it. Narrower than RFC 9110
 * section 7.2: no percent-encoding, no user information, no IPvFuture.
 */
export function isHost(value: string): boolean {
  const match = HOST.exec(value);
  if (match === null) return false;
  const [, name, address, port] = match;
  if (port !== undefined && Number(port) > 65_535) return false;
  if (name === undefined) return isIPv6(address as string);
  return !SPECIAL_NAME.test(name) || isIPv4(name) || parseUrl(`http://${name}`) !== undefined;
}

/**
 * {@link isHost} that caches the last value it accepted. Nearly all requests on a listener name the same host, and
 * regular expressions are slow on the strings that node:http2 creates: it saves 5 % of an HTTP/2 request.
 */
export function createHostMemory(): (value: string) => boolean {
  let known: string | undefined;
  return (value) => {
    if (value === known) return true;
    if (!isHost(value)) return false;
    known = value;
    return true;
  };
}

const UNFRAMED: Refusal = {
  status: 400,
  text: "This Transfer-Encoding does not show where the body ends; send chunked once, as the last coding.",
};
const UNKNOWN: Refusal = {
  status: 501,
  text: "This transfer coding is not supported; send only chunked, and use Content-Encoding for compression.",
};

/**
 * Checks how the body of an HTTP/1.1 request is framed. The parser finds a fault only after the head, when a handler
 * may have answered already, and what follows on the connection could not be told from the body (RFC 9112 section 6.3).
 * Pure.
 *
 * @param rawHeaders names and values in turn, as received.
 * @returns the refusal, or undefined for `chunked` and for no transfer coding at all.
 */
export function decideTransferCoding(rawHeaders: readonly string[]): Refusal | undefined {
  let codings: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length !== "transfer-encoding".length || name.toLowerCase() !== "transfer-encoding") continue;
    codings = codings === undefined ? rawHeaders[index + 1] : `${codings},${rawHeaders[index + 1]}`;
  }
  if (codings === undefined || codings === "chunked") return undefined;
  const names = codings.split(",").map((each) => unpadded(each).toLowerCase());
  if (names.indexOf("chunked") !== names.length - 1) return UNFRAMED;
  return names.length === 1 ? undefined : UNKNOWN;
}

/** Trims the whitespace of RFC 9110 section 5.6.3. No regular expression for the end: it would take quadratic time. */
function unpadded(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === " " || text[end - 1] === "\t")) end--;
  return text.slice(0, end).replace(/^[ \t]+/, "");
}
