import type { Writable } from "node:stream";
import type { HttpResponse } from "./exchange.js";

/** Ends a response with a body that may lie in pieces, in one write to the socket. */
export function endWith(response: HttpResponse, pieces: readonly Uint8Array[]): void {
  const out: Writable = response;
  if (pieces.length > 1) {
    out.cork();
    for (const piece of pieces.slice(0, -1)) out.write(piece);
  }
  out.end(pieces.at(-1));
}
