import { createChunks } from "../chunks.js";
import { RelayError } from "../errors.js";
import { DRAIN_FACTOR, type HttpRequest } from "../listener/exchange.js";
import { overloaded, type Reservation } from "../relay/budget.js";

/**
 * Reads a whole request body. One chunk is returned as it came, without a copy.
 *
 * Rejects with RelayError REQUEST_TOO_LARGE above `maxBytes`, OVERLOADED when the memory budget has no room for it, and
 * CALL_FORMAT_ERROR when the caller goes before its end: nobody reads that row, but it is no fault of ours either.
 */
export function readBody(request: HttpRequest, maxBytes: number, memory: Reservation): Promise<Buffer> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes * DRAIN_FACTOR) return Promise.reject(tooLarge(maxBytes));
  return new Promise((resolve, reject) => {
    let chunks = createChunks();
    let length = 0;
    memory.onEvicted = () => refuse(overloaded());
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
    request.on("error", (cause) => reject(cutShort(cause)));
    request.on("close", () => {
      // After every request; an error with its stack would be made for each of them.
      if (!request.readableEnded) reject(cutShort(undefined));
    });

    function refuse(error: RelayError): void {
      request.pause();
      reject(error);
    }
  });
}

function tooLarge(maxBytes: number): RelayError {
  return new RelayError("REQUEST_TOO_LARGE", `The request body is over the limit of ${maxBytes} bytes. Send less.`);
}

function cutShort(cause: unknown): RelayError {
  return new RelayError("CALL_FORMAT_ERROR", "The request ended before its body was complete. Send it again.", {
    cause,
  });
}
