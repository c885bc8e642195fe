import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { InvalidParameter } from "./parameters.js";
import { type Answer, errorAnswer } from "./router.js";
import type { Respond } from "./routes.js";

/** Largest request content; above what a relay lets through by default, so that its own limit is what a test meets. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

const NO_BODY = Buffer.alloc(0);

/**
 * Joins node:http to `respond`. Whatever fails ends as an answer or a closed connection, never as an error of the
 * process. A request without content whose answer is at hand is answered in the same tick.
 */
export function createListener(respond: Respond): RequestListener {
  return (message, response) => {
    // Writing to a client that left raises an error event; nobody is left to answer.
    response.on("error", () => {});
    if (hasBody(message)) {
      void answerWithBody(message, response, respond);
      return;
    }
    answerNow(message, response, respond, NO_BODY);
  };
}

async function answerWithBody(message: IncomingMessage, response: ServerResponse, respond: Respond): Promise<void> {
  try {
    answerNow(message, response, respond, await readBody(message, MAX_BODY_BYTES));
  } catch (error) {
    answerFailure(response, error);
  }
}

function answerNow(message: IncomingMessage, response: ServerResponse, respond: Respond, body: Buffer): void {
  try {
    const { method = "", url: target = "", httpVersion, rawHeaders } = message;
    const answer = respond({ method, target, httpVersion, rawHeaders, body });
    if (answer instanceof Promise) void answerLater(response, answer);
    else sendAnswer(response, answer);
  } catch (error) {
    answerFailure(response, error);
  }
}

async function answerLater(response: ServerResponse, pending: Promise<Answer>): Promise<void> {
  try {
    sendAnswer(response, await pending);
  } catch (error) {
    answerFailure(response, error);
  }
}

function answerFailure(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  try {
    sendAnswer(response, answerFromError(error));
  } catch {
    // The failed attempt has left a status line that cannot be sent: a closed connection is what remains to say so.
    response.destroy();
  }
}

function answerFromError(error: unknown): Answer {
  if (error instanceof InvalidParameter) return errorAnswer(400, "invalid_request", `${error.message}.`);
  if (error instanceof BodyTooLarge) {
    return errorAnswer(413, "content_too_large", "The content is too large.", ["Connection", "close"]);
  }
  if (isFieldError(error)) return errorAnswer(400, "invalid_request", "HTTP cannot carry a field with this text.");
  return errorAnswer(500, "server_error", "The sandbox failed.");
}

/** Codes of node:http for a field or reason phrase that would break the message. */
function isFieldError(error: unknown): boolean {
  const code = error instanceof Error ? Reflect.get(error, "code") : undefined;
  return code === "ERR_INVALID_CHAR" || code === "ERR_INVALID_HTTP_TOKEN";
}

/** The content is larger than the sandbox takes. */
class BodyTooLarge extends Error {}

/** Whether the framing says that content follows (RFC 9112 section 6.3). */
function hasBody(message: IncomingMessage): boolean {
  const length = message.headers["content-length"];
  return message.headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}

/**
 * Reads the whole content. Rejects with {@link BodyTooLarge} above `maxBytes`, the rest is then discarded; rejects with
 * the connection's error when the client leaves before the end.
 */
function readBody(message: IncomingMessage, maxBytes: number): Promise<Buffer> {
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

/**
 * Writes an answer: buffers in one write with their Content-Length, streams chunked. node:http leaves the content out
 * for HEAD. Throws, before anything is sent, when a field is not one HTTP can carry.
 */
function sendAnswer(response: ServerResponse, answer: Answer): void {
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
