import { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { LARGE_BYTES, slicesOf } from "../lib/slices.js";
import type { HttpResponse } from "./exchange.js";

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
