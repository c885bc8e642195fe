import { Code } from "@connectrpc/connect";
import type { HttpRequest, HttpResponse } from "../listener/exchange.js";

const TEXT = "Send an admin token: Authorization: Bearer TOKEN, with one of RELAY_ADMIN_TOKEN_FILE.";

/**
 * Answers a request that shows no valid admin token, in the words of its protocol: 401 with `WWW-Authenticate: Bearer`
 * (RFC 6750 section 3), which over Connect has an error as its body; over gRPC and gRPC-Web, whose HTTP status is
 * always 200, a status of UNAUTHENTICATED in place of any message.
 */
export function answerUnauthenticated({ headers }: HttpRequest, response: HttpResponse): void {
  const hasToken = headers.authorization !== undefined;
  response.setHeader(
    "www-authenticate",
    `Bearer realm="relay administration"${hasToken ? ', error="invalid_token"' : ""}`,
  );
  response.setHeader("cache-control", "no-store");
  const contentType = headers["content-type"] ?? "";
  if (contentType.startsWith("application/grpc")) answerGrpc(response, contentType);
  else answerConnect(response);
}

function answerConnect(response: HttpResponse): void {
  const body = Buffer.from(JSON.stringify({ code: "unauthenticated", message: TEXT }));
  response.writeHead(401, { "content-type": "application/json", "content-length": String(body.length) });
  response.end(body);
}

/** A response without messages has its status in the header fields: Trailers-Only of the gRPC protocol over HTTP/2. */
function answerGrpc(response: HttpResponse, contentType: string): void {
  response.writeHead(200, {
    "content-type": contentType,
    "grpc-status": String(Code.Unauthenticated),
    "grpc-message": encodeURIComponent(TEXT).replaceAll("%20", " "),
  });
  response.end();
}
