import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { binaryOf, type ContentKind, jsonOf, TOKEN_PATH } from "./content.js";
import { serve } from "./serve.js";

/** A provider that costs next to nothing: it answers buffers made once, to whoever shows a bearer token. */
const prepared = new Map<string, Buffer>();

function contentAt(path: string): Buffer {
  const known = prepared.get(path);
  if (known !== undefined) return known;
  const [, kind, bytes] = path.split("/") as [string, ContentKind, string];
  const made = kind === "json" ? jsonOf(Number(bytes)) : binaryOf(Number(bytes));
  prepared.set(path, made);
  return made;
}

/** RFC 6749 section 5.1. */
function newTokens(): Buffer {
  const [access_token, refresh_token] = [randomBytes(30).toString("base64url"), randomBytes(30).toString("base64url")];
  return Buffer.from(JSON.stringify({ access_token, refresh_token, token_type: "Bearer", expires_in: 3600 }));
}

function answer(response: ServerResponse, status: number, type: string, body: Buffer): void {
  // Without a Keep-Alive field, as most providers: whoever keeps a socket has to find out for how long.
  const fields = ["content-type", type, "content-length", String(body.length), "connection", "keep-alive"];
  response.writeHead(status, fields);
  response.end(body);
}

serve((request, response) => {
  const path = request.url ?? "";
  if (path === TOKEN_PATH) {
    request.resume().on("end", () => answer(response, 200, "application/json", newTokens()));
    return;
  }
  const type = path.startsWith("/json/") ? "application/json" : "application/octet-stream";
  answer(response, request.headers.authorization?.startsWith("Bearer ") ? 200 : 401, type, contentAt(path));
});
