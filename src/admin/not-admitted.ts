import { Code } from "@connectrpc/connect";
import type { HttpRequest, HttpResponse } from "../http/exchange.js";

/** How a refusal is said over gRPC, over HTTP, and to a person. */
interface Refusal {
  readonly code: Code;
  /** Name of the code over Connect. */
  readonly name: string;
  readonly status: number;
  readonly text: string;
}

const UNAUTHENTICATED: Refusal = {
  code: Code.Unauthenticated,
  name: "unauthenticated",
  status: 401,
  text: "Send an admin token: Authorization: Bearer TOKEN, with one of RELAY_ADMIN_TOKEN_FILE as it was when the relay started.",
};

/**
 * Answers a request that was not admitted, in the words of its protocol: 401 with `WWW-Authenticate: Bearer` (RFC 6750
 * section 3), or 429 with `Retry-After` (RFC 6585 section 4), which over Connect have an error as their body; over gRPC
 * and gRPC-Web, whose HTTP status is always 200, a status of UNAUTHENTICATED or RESOURCE_EXHAUSTED in place of any
 * message.
 *
 * @param waitSeconds until the next try is looked at; 0 for at once.
 */
export function answerNotAdmitted({ headers }: HttpRequest, response: HttpResponse, waitSeconds: number): void {
  if (waitSeconds > 0) response.setHeader("retry-after", String(waitSeconds));
  else response.setHeader("www-authenticate", challenge(headers.authorization !== undefined));
  response.setHeader("cache-control", "no-store");
  const refusal = waitSeconds > 0 ? tooMany(waitSeconds) : UNAUTHENTICATED;
  const contentType = headers["content-type"] ?? "";
  if (contentType.startsWith("application/grpc")) answerGrpc(response, contentType, refusal);
  else answerConnect(response, refusal);
}

function challenge(hasToken: boolean): string {
  return `Bearer realm="relay administration"${hasToken ? ', error="invalid_token"' : ""}`;
}

function tooMany(waitSeconds: number): Refusal {
  const text = `Too many wrong admin tokens from this address. Try again in ${waitSeconds} seconds.`;
  return { code: Code.ResourceExhausted, name: "resource_exhausted", status: 429, text };
}

function answerConnect(response: HttpResponse, { name, status, text }: Refusal): void {
  const body = Buffer.from(JSON.stringify({ code: name, message: text }));
  response.writeHead(status, { "content-type": "application/json", "content-length": String(body.length) });
  response.end(body);
}

/** A response without messages has its status in the header fields: Trailers-Only of the gRPC protocol over HTTP/2. */
function answerGrpc(response: HttpResponse, contentType: string, { code, text }: Refusal): void {
  response.writeHead(200, {
    "content-type": contentType,
    "grpc-status": String(code),
    "grpc-message": encodeURIComponent(text).replaceAll("%20", " "),
  });
  response.end();
}
