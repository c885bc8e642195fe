import { inspect } from "node:util";

/** A request with its target parsed. */
export interface RoutedRequest {
  readonly received: SandboxRequest;
  /** Path as received, never decoded. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Decides the answer to one request; no handler touches the socket. */
export type Handler<Request extends RoutedRequest> = (request: Request) => Answer | Promise<Answer>;

/** One line of a route table. */
export interface Route<Request extends RoutedRequest> {
  /** Exact path; ending in `/*`, it also matches everything below it. */
  readonly path: string;
  /** GET includes HEAD. */
  readonly methods: readonly string[] | "ANY";
  readonly handle: Handler<Request>;
}

/** Finds the route of a path; undefined when there is none. */
type Router<Request extends RoutedRequest> = (path: string) => Route<Request> | undefined;

/** Indexes a route table: exact paths first, then the subtrees in the order given. */
export function createRouter<Request extends RoutedRequest>(routes: readonly Route<Request>[]): Router<Request> {
  const exact = new Map<string, Route<Request>>();
  const subtrees: Array<readonly [prefix: string, route: Route<Request>]> = [];
  for (const route of routes) {
    const base = route.path.replace(/\/\*$/, "");
    exact.set(base, route);
    if (base !== route.path) subtrees.push([`${base}/`, route]);
  }
  return (path) => exact.get(path) ?? subtrees.find(([prefix]) => path.startsWith(prefix))?.[1];
}

/** Calls the route's handler, or answers 404 or 405 (RFC 9110 section 15.5.6). */
export function callRoute<Request extends RoutedRequest>(
  route: Route<Request> | undefined,
  request: Request,
): Answer | Promise<Answer> {
  if (route === undefined) return errorAnswer(404, "not_found", "No such path in the sandbox.");
  const method = request.received.method;
  if (route.methods === "ANY" || route.methods.includes(method === "HEAD" ? "GET" : method)) {
    return route.handle(request);
  }
  const allow = route.methods.flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name])).join(", ");
  return errorAnswer(405, "method_not_allowed", `This path accepts ${allow}.`, ["Allow", allow]);
}

/** Splits a request target without checking or normalising it; drops the origin of the absolute form. */
export function parseTarget(target: string): { path: string; query: URLSearchParams } {
  const origin = /^https?:\/\/[^/?]*/i.exec(target)?.[0] ?? "";
  const rest = target.slice(origin.length);
  const mark = rest.indexOf("?");
  const path = mark === -1 ? rest : rest.slice(0, mark);
  return { path: path === "" ? "/" : path, query: new URLSearchParams(mark === -1 ? "" : rest.slice(mark + 1)) };
}

/** One request as received; made by {@link createSandboxRequest}. */
export interface SandboxRequest {
  /** As sent, with its case. */
  readonly method: string;
  /** Request target as in the request line (RFC 9112 section 3.2), never decoded or normalised. */
  readonly target: string;
  /** `1.1` or `1.0`. */
  readonly httpVersion: string;
  /** Field lines as received: name, value, name, value, … (latin1 text). */
  readonly rawHeaders: readonly string[];
  /** Content after transfer decoding; content codings are not decoded. */
  readonly body: Buffer;
  /** Whether its bearer token was a valid access token at that moment. */
  readonly authorized: boolean;
}

/** Adds printed forms without field lines, query and body, which may contain a token. */
export function createSandboxRequest(fields: SandboxRequest): SandboxRequest {
  const { method, target, httpVersion, body, authorized } = fields;
  const printed = { method, path: target.split("?", 1)[0], httpVersion, bodyBytes: body.length, authorized };
  return Object.assign(
    { ...fields },
    { toJSON: () => printed, [inspect.custom]: () => `SandboxRequest ${inspect(printed)}` },
  );
}

/** The last requests, oldest first, bounded by number and by bytes of content. */
export interface RequestLog {
  /** The same array for the life of the log. */
  readonly requests: readonly SandboxRequest[];
  add(request: SandboxRequest): void;
}

/**
 * Keeps at most `maxRequests` requests with at most `maxBytes` of content together: a test that uploads 10 MiB a
 * thousand times must not fill the memory. The newest request is always kept.
 */
export function createRequestLog(limits: { maxRequests: number; maxBytes: number }): RequestLog {
  const requests: SandboxRequest[] = [];
  let bytes = 0;
  return {
    requests,
    add(request) {
      requests.push(request);
      bytes += request.body.length;
      while (requests.length > 1 && (requests.length > limits.maxRequests || bytes > limits.maxBytes)) {
        bytes -= requests.shift()?.body.length ?? 0;
      }
    },
  };
}

/** An answer of the sandbox: decided by a handler, written by `sendAnswer`. */
export interface Answer {
  readonly statusCode: number;
  /** Reason phrase; by default the standard one of the status. */
  readonly reason?: string;
  /** Field lines as sent: name, value, name, value, …; without framing fields. */
  readonly fields: readonly string[];
  /** Content; a function starts a stream, which is sent chunked and ends when the client disconnects. */
  readonly body: Buffer | (() => AsyncIterable<Uint8Array>) | undefined;
}

/** An answer with this JSON text, sent exactly as written. */
export function jsonAnswer(text: string, statusCode = 200, fields: readonly string[] = []): Answer {
  return contentAnswer("application/json", Buffer.from(text), statusCode, fields);
}

/** An answer with content of the given type. */
export function contentAnswer(
  contentType: string,
  body: Buffer,
  statusCode = 200,
  fields: readonly string[] = [],
): Answer {
  return { statusCode, fields: ["Content-Type", contentType, ...fields], body };
}

/** An answer without content. */
export function emptyAnswer(statusCode: number, fields: readonly string[] = []): Answer {
  return { statusCode, fields, body: undefined };
}

/** A refusal: a JSON object with a stable code and one sentence. */
export function errorAnswer(
  statusCode: number,
  error: string,
  description: string,
  fields: readonly string[] = [],
): Answer {
  return jsonAnswer(JSON.stringify({ error, error_description: description }), statusCode, fields);
}
