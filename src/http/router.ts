import { answerPlain, type HttpRequest, type HttpResponse } from "./exchange.js";
import type { Readiness } from "./readiness.js";

/** Answers the request when it is its own; otherwise does nothing and returns undefined. */
export type PathHandler = (request: HttpRequest, response: HttpResponse, path: string) => Promise<void> | undefined;

/** Paths that every port answers, in plain text. */
export const HEALTH_PATHS = { liveness: "/healthz", readiness: "/readyz" } as const;

/**
 * Sends each request to the first handler that knows its path; `/healthz` and `/readyz` are answered here, everything
 * else is 404. Rejects only when a handler does.
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

/** Liveness says that the process answers; readiness that calls can be served. */
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
