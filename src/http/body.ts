import { type Bytes, createChunks } from "../lib/chunks.js";
import type { CallerSignal } from "../model/caller-signal.js";
import { overloaded, RelayError } from "../model/errors.js";
import type { HttpRequest } from "./exchange.js";

/** How far beyond the limit a body is still read and thrown away, so that the caller gets to see the answer. */
export const DRAIN_FACTOR = 4;

/** An HTTP/1.1 request that was not read to its end leaves bytes behind that are not the next request. */
export function mustClose(request: HttpRequest): boolean {
  return request.httpVersionMajor === 1 && !request.complete;
}

/** What bytes that are held are counted by. */
interface Room {
  /** Counts them. False when there is no room. */
  reserve(bytes: number): boolean;
}

/**
 * Reads a whole request body, in the chunks that it came in. That the caller is gone is the signal's to
 * tell: listening for it on the request costs each call more than its body.
 *
 * Rejects with RelayError REQUEST_TOO_LARGE above `maxBytes`, OVERLOADED when there is no room for it, and
 * CALL_FORMAT_ERROR when the caller goes before its end: nobody reads that row, but it is no fault of ours either.
 */
export function readBody(request: HttpRequest, maxBytes: number, room: Room, signal: CallerSignal): Promise<Bytes> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes * DRAIN_FACTOR) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    let chunks = createChunks();
    let length = 0;
    const left = {
      handleEvent: () =>
        signal.reason instanceof RelayError ? refuse(signal.reason) : reject(cutShort(signal.reason)),
    };
    signal.addEventListener("abort", left);
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes * DRAIN_FACTOR) refuse(tooLarge(maxBytes));
      else if (length > maxBytes) chunks = createChunks();
      else if (room.reserve(chunk.length)) chunks.push(chunk);
      else refuse(overloaded());
    });
    request.on("end", () => {
      signal.removeEventListener("abort", left);
      if (length > maxBytes) reject(tooLarge(maxBytes));
      else resolve(chunks);
    });

    function refuse(error: unknown): void {
      request.pause();
      reject(error);
    }
  });
}

/** What a request is refused with whose body is over the limit. */
export function tooLarge(maxBytes: number): RelayError {
  return new RelayError("REQUEST_TOO_LARGE", `The request body is over the limit of ${maxBytes} bytes. Send less.`);
}

function cutShort(cause: unknown): RelayError {
  return new RelayError("CALL_FORMAT_ERROR", "The request ended before its body was complete. Send it again.", {
    cause,
  });
}
