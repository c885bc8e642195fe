import type { IncomingMessage } from "node:http";

/** The content is larger than the sandbox takes. */
export class BodyTooLarge extends Error {}

/** Whether the framing says that content follows (RFC 9112 section 6.3). */
export function hasBody(message: IncomingMessage): boolean {
  const length = message.headers["content-length"];
  return message.headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}

/**
 * Reads the whole content. Rejects with {@link BodyTooLarge} above `maxBytes`, the rest is then discarded; rejects with
 * the connection's error when the client leaves before the end.
 */
export function readBody(message: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    message.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      reject(new BodyTooLarge());
    });
    message.on("end", () => resolve(Buffer.concat(chunks)));
    message.on("error", reject);
    message.on("close", () => reject(new Error("connection closed within the content")));
  });
}
