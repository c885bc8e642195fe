// Serves the page, and signs the id of its user: the private key never leaves this server.
//
//   npx relay app create Web --caller-auth signed-user --allow-origin http://127.0.0.1:5173
//   PUBLIC_KEY=… PRIVATE_KEY=… npx tsx docs/examples/browser/server.ts
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const env = (name: string, fallback: string) => process.env[name] || fallback;
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

// Any bundler does; what is bundled is connect-web, the message types and page.ts.
const bundled = await build({
  entryPoints: [file("page.ts")],
  bundle: true,
  format: "esm",
  minify: true,
  write: false,
});
const script = bundled.outputFiles[0]?.contents ?? "";
const page = readFileSync(file("index.html"));

/** Whoever is logged in here; `user_signature` is HMAC-SHA256(private key, user id) in lower-case hex. */
function callerFor(userId: string) {
  const userSignature = createHmac("sha256", env("PRIVATE_KEY", "")).update(userId).digest("hex");
  return {
    relayUrl: env("RELAY_URL", "http://127.0.0.1:8080"),
    apiUrl: env("API_URL", "http://127.0.0.1:8090"),
    providerName: env("PROVIDER", "sandbox"),
    publicKey: env("PUBLIC_KEY", ""),
    userId,
    userSignature,
  };
}

const server = createServer((request, response) => {
  if (request.url === "/page.js") response.setHeader("content-type", "text/javascript").end(script);
  else if (request.url === "/caller.json") response.end(JSON.stringify(callerFor(env("USER_ID", "ada"))));
  else response.setHeader("content-type", "text/html").end(page);
});
server.listen(Number(env("PORT", "5173")), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
