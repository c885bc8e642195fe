import { createChunks } from "../chunks.js";
import { RelayError } from "../errors.js";
import type { HttpRequest } from "../listener/exchange.js";
import { overloaded, type Reservation } from "../relay/budget.js";

/** How far beyond the limit a body is still read and thrown away, so that the caller gets to see the answer. */
const DRAIN_FACTOR = 4;

/**
 * Reads a whole request body. One chunk is returned as it came, without a copy.
 *
 * Rejects with RelayError REQUEST_TOO_LARGE above `maxBytes`, OVERLOADED when the memory budget has no room for it, and
 * with the stream's error when the caller is gone.
 */
export function readBody(request: HttpRequest, maxBytes: number, memory: Reservation): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks = createChunks();
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes * DRAIN_FACTOR) refuse(tooLarge(maxBytes));
      else if (length > maxBytes) chunks = createChunks();
      else if (memory.reserve(chunk.length)) chunks.push(chunk);
      else refuse(overloaded());
    });
    request.on("end", () => {
      if (length > maxBytes) reject(tooLarge(maxBytes));
      else resolve(chunks.concat());
    });
    request.on("error", reject);
    request.on("close", () => reject(new Error("The caller closed the connection before the request was complete.")));

    function refuse(error: RelayError): void {
      request.pause();
      reject(error);
    }
  });
}

function tooLarge(maxBytes: number): RelayError {
  return new RelayError("REQUEST_TOO_LARGE", `The request body is over the limit of ${maxBytes} bytes. Send less.`);
}
