import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Writable } from "node:stream";
import { LARGE_BYTES, slicesOf } from "../lib/chunks.js";

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

/**
 * Ends a response with a body that may lie in pieces. A small one is one write to the socket. A large one is written in
 * slices, each when the client has taken those before it: that is how the sweep knows who reads slowly from who does
 * not read.
 *
 * HTTP/1 gathers what is written in one tick by itself, and must not be corked: since Node.js 22.23 a chunked answer
 * that ends while it is corked has its last chunk in front of the others.
 */
export function endWith(response: HttpResponse, pieces: readonly Uint8Array[]): void {
  const out: Writable = response;
  if (pieces.reduce((bytes, { length }) => bytes + length, 0) > LARGE_BYTES) {
    endInSlices(out, slicesOf({ pieces }));
    return;
  }
  if (pieces.length > 1 && !(response instanceof ServerResponse)) out.cork();
  for (const piece of pieces.slice(0, -1)) out.write(piece);
  out.end(pieces.at(-1));
}

function endInSlices(out: Writable, slices: Iterator<Buffer, void>): void {
  for (let slice = slices.next(); !slice.done; slice = slices.next()) {
    if (out.write(slice.value)) continue;
    out.once("drain", () => endInSlices(out, slices));
    return;
  }
  out.end();
}

/** The field that names a request; an answer has it, too. */
export const REQUEST_ID = "x-request-id";

/**
 * An HTTP/1 answer that carries the id of its request, whoever writes it. `setHeader()` would do the same, but sends
 * every `writeHead()` after it the slow way, which costs a call three times as much as the field itself.
 */
export class NamedResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  /** Undefined until the request is named. */
  requestId: string | undefined;

  override writeHead(statusCode: number, statusMessage?: string, fields?: Fields): this;
  override writeHead(statusCode: number, fields?: Fields): this;
  override writeHead(statusCode: number, first?: string | Fields, second?: Fields): this {
    const fields = (typeof first === "string" ? second : first) ?? {};
    if (this.requestId === undefined) return super.writeHead(statusCode, fields);
    if (Array.isArray(fields)) this.setHeader(REQUEST_ID, this.requestId);
    // Into the caller's object, which nobody uses again: a copy costs as much as all the rest.
    else fields[REQUEST_ID] = this.requestId;
    return super.writeHead(statusCode, fields);
  }
}

type Fields = OutgoingHttpHeaders | OutgoingHttpHeader[];
