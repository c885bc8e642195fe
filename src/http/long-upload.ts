import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import type { HttpRequest, HttpResponse } from "./exchange.js";
import { DEFAULT_LIMITS } from "./limits.js";

/** Responses, or streams of HTTP/2, whose requests may take longer than `requestTimeoutMs`. */
const allowed = new WeakSet<object>();

/** From here on whoever reads the request's body says how long it may take, and not the listener. */
export function allowLongUpload(response: HttpResponse): void {
  allowed.add(response instanceof ServerResponse ? response : response.stream);
}

/** Whether the body of a request may take longer than others. @param exchange a response of HTTP/1, a stream of HTTP/2. */
export function isLongUpload(exchange: object | undefined): boolean {
  return exchange !== undefined && allowed.has(exchange);
}

/**
 * To be called with an answer that may be complete before its request is: what the client still sends is thrown away, for
 * so long that it gets to see the answer, and then the connection (HTTP/1.1) or the stream (HTTP/2) ends. A socket that is
 * closed with unread input resets the connection, and the client loses the answer (RFC 9112 section 9.6).
 */
export function discardRestAfter(request: HttpRequest, response: HttpResponse): void {
  if (!(response instanceof ServerResponse)) {
    const { stream } = response;
    // The response of node:http2 finishes when its stream is closed.
    stream.once("finish", () => {
      allowed.delete(stream);
      // The answer is whole: only the rest of the request is not wanted (RFC 9113 section 8.1).
      if (!request.complete) stream.close(constants.NGHTTP2_NO_ERROR);
    });
    return;
  }
  response.once("finish", () => {
    allowed.delete(response);
    if (!request.complete) discardRest(request);
  });
}

function discardRest(request: HttpRequest): void {
  const { socket } = request;
  request.removeAllListeners("data");
  request.resume();
  const timer = setTimeout(() => socket.destroy(), DEFAULT_LIMITS.lingerMs);
  request.once("end", () => clearTimeout(timer));
  socket.once("close", () => clearTimeout(timer));
}
