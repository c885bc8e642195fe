import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** A request as both HTTP/1.1 and HTTP/2 hand it over. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;

/** A response as both HTTP/1.1 and HTTP/2 take it. */
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** How far beyond the limit a body is still read and thrown away, so that the caller gets to see the answer. */
export const DRAIN_FACTOR = 4;

/** Answers with a short plain text; for what is outside the JSON route and the RPCs. */
export function answerPlain(
  response: HttpResponse,
  statusCode: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(`${text}\n`);
  response.writeHead(statusCode, {
    "content-type": "text/plain; charset=utf-8",
    "content-length": String(body.length),
    ...headers,
  });
  response.end(body);
}
