import type { Answer } from "./answer.js";
import { errorAnswer } from "./answer.js";
import type { SandboxRequest } from "./sandbox-request.js";

/** A request with its target taken apart. */
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
  /** Exact path; with `/*` at its end also everything below it. */
  readonly path: string;
  /** HEAD comes with GET. */
  readonly methods: readonly string[] | "ANY";
  readonly handle: Handler<Request>;
}

/** Finds the route of a path; undefined when there is none. */
export type Router<Request extends RoutedRequest> = (path: string) => Route<Request> | undefined;

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
  return errorAnswer(405, "method_not_allowed", `This path takes ${allow}.`, ["Allow", allow]);
}

/** Takes a request target apart without judging or normalising it; the absolute form loses its origin. */
export function parseTarget(target: string): { path: string; query: URLSearchParams } {
  const origin = /^https?:\/\/[^/?]*/i.exec(target)?.[0] ?? "";
  const rest = target.slice(origin.length);
  const mark = rest.indexOf("?");
  const path = mark === -1 ? rest : rest.slice(0, mark);
  return { path: path === "" ? "/" : path, query: new URLSearchParams(mark === -1 ? "" : rest.slice(mark + 1)) };
}
