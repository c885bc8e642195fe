import { setMaxListeners } from "node:events";
import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { createCallIds } from "../model/call-id.js";
import { answerPlain, type HttpRequest, type HttpResponse, REQUEST_ID } from "./exchange.js";
import { identify } from "./identity.js";
import type { ListenerLimits } from "./limits.js";
import { createHostMemory, decideRequest } from "./request.js";

/** Receives every request that passed {@link decideRequest}. Whatever it throws, or rejects with, is answered with 500. */
export type Handler = (req: HttpRequest, res: HttpResponse) => void;

/** Called for faults worth a log line: where, and the error, which never holds bytes of a request. */
export type OnFault = (where: string, error: unknown) => void;

/** What a request's Expect field asks for, RFC 9110 section 10.1.1. */
export type Expectation = "none" | "continue" | "unknown";

/** Gives one request to the handler, or refuses it; never throws. */
export type Dispatch = (expectation: Expectation, req: HttpRequest, res: HttpResponse) => void;

/** Makes the function that stands between a protocol's server and the handler. */
export function createDispatch(spoken: 1 | 2, limits: ListenerLimits, handler: Handler, onFault: OnFault): Dispatch {
  const fail = (res: HttpResponse, error: unknown) => {
    onFault("handler", error);
    answerFault(res);
  };
  const acceptsHost = createHostMemory();
  const newCallId = createCallIds(Date.now);
  return (expectation, req, res) => {
    identify(req, res, newCallId);
    const refusal = decideRequest(spoken, req.httpVersionMajor, req.rawHeaders, limits, acceptsHost);
    if (refusal !== undefined) return answer(res, refusal.status, refusal.text);
    if (expectation === "unknown") return answer(res, 417, "This expectation is not supported; leave Expect out.");
    try {
      if (expectation === "continue") res.writeContinue();
      const result: unknown = handler(req, res);
      if (result instanceof Promise) result.catch((error: unknown) => fail(res, error));
    } catch (error) {
      fail(res, error);
    }
  };
}

/** 500 where the head is still ours to write, otherwise an end that the client can tell from a complete answer. */
function answerFault(res: HttpResponse): void {
  if (res.writableEnded) return;
  if (!res.headersSent) answer(res, 500, "Internal error.");
  else if (res instanceof ServerResponse) res.destroy();
  else res.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
}

/** Ends an exchange with a line of text. HTTP/1 also ends the connection: what follows on it is not to be trusted. */
function answer(res: HttpResponse, status: number, text: string): void {
  // A handler that failed may have left fields that do not fit this body.
  for (const name of res.getHeaderNames()) if (name !== REQUEST_ID) res.removeHeader(name);
  if (res instanceof ServerResponse) res.shouldKeepAlive = false;
  answerPlain(res, status, text);
}

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

/** Whether the service can take calls: the store answers and no stop has begun. */
export interface Readiness {
  /** Resolves to why not, in a sentence that callers may see; undefined when it can. */
  problem(): Promise<string | undefined>;
  /** Resolves when the service begins to stop, or when the signal aborts. */
  stopped(signal: AbortSignal): Promise<void>;
  /** Marks the beginning of a stop: not ready from here on. */
  stop(): void;
}

/** @param probe resolves to what every call needs and is away, in a sentence that callers may see. */
export function createReadiness(probe: () => Promise<string | undefined>): Readiness {
  const stopping = new AbortController();
  // Each Watch of the health service waits for it.
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
