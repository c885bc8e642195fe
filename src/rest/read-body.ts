import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { RelayError } from "../errors.js";

/** How far beyond the limit a body is still read and thrown away, so that the caller gets to see the answer. */
const DRAIN_FACTOR = 4;

/**
 * Reads a whole request body. One chunk is returned as it came, without a copy.
 *
 * Rejects with RelayError REQUEST_TOO_LARGE above `maxBytes`, and with the stream's error when the caller is gone.
 */
export function readBody(request: IncomingMessage | Http2ServerRequest, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) chunks.push(chunk);
      else if (length > maxBytes * DRAIN_FACTOR) tooLarge();
      else chunks.length = 0;
    });
    request.on("end", () => {
      if (length > maxBytes) tooLarge();
      else resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
    });
    request.on("error", reject);
    request.on("close", () => reject(new Error("The caller closed the connection before the request was complete.")));

    function tooLarge(): void {
      request.pause();
      reject(
        new RelayError("REQUEST_TOO_LARGE", `The request body is over the limit of ${maxBytes} bytes. Send less.`),
      );
    }
  });
}
