import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { createCallIds } from "../model/call-id.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "./exchange.js";
import { createHostMemory } from "./host.js";
import { identify } from "./identity.js";
import type { ListenerLimits } from "./limits.js";
import { REQUEST_ID } from "./named-response.js";
import { decideRequest } from "./request.js";

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
