import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import type { Answer } from "./answer.js";

/**
 * Writes an answer: buffers in one write with their Content-Length, streams chunked. node:http leaves the content out
 * for HEAD. Throws, before anything is sent, when a field is not one HTTP can carry.
 */
export function sendAnswer(response: ServerResponse, answer: Answer): void {
  const { statusCode, reason, fields, body } = answer;
  if (typeof body === "function") {
    response.writeHead(statusCode, reason, [...fields]);
    sendStream(response, body);
    return;
  }
  response.writeHead(statusCode, reason, [...fields, ...contentLength(statusCode, body)]);
  response.end(body);
}

function sendStream(response: ServerResponse, start: () => AsyncIterable<Uint8Array>): void {
  if (response.req.method === "HEAD") {
    response.end();
    return;
  }
  // A failed stream has already destroyed the response: the client sees a cut answer, and there is nobody else to tell.
  pipeline(start(), response, () => {});
}

/** https://www.rfc-editor.org/rfc/rfc9110#section-8.6: none on 204; on 304 it would describe another answer. */
function contentLength(statusCode: number, body: Buffer | undefined): string[] {
  if (statusCode === 204 || statusCode === 304) return [];
  return ["Content-Length", String(body?.length ?? 0)];
}
