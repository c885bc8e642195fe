import { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import type { HttpResponse } from "./exchange.js";

/**
 * Ends a response with a body that may lie in pieces, in one write to the socket. HTTP/1 gathers what is written in one
 * tick by itself, and must not be corked: since Node.js 22.23 a chunked answer that ends while it is corked has its last
 * chunk in front of the others.
 */
export function endWith(response: HttpResponse, pieces: readonly Uint8Array[]): void {
  const out: Writable = response;
  if (pieces.length > 1 && !(response instanceof ServerResponse)) out.cork();
  for (const piece of pieces.slice(0, -1)) out.write(piece);
  out.end(pieces.at(-1));
}
