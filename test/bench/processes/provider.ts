import { createServer } from "node:http";
import { announce } from "./announce.js";
import { binaryOf, type ContentKind, jsonOf } from "./content.js";

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

const server = createServer((request, response) => {
  const path = request.url ?? "";
  const body = contentAt(path);
  response.writeHead(request.headers.authorization?.startsWith("Bearer ") ? 200 : 401, [
    "content-type",
    path.startsWith("/json/") ? "application/json" : "application/octet-stream",
    "content-length",
    String(body.length),
  ]);
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => announce(server.address()));
