// Serves the pages, and proves who their user is: the private key never leaves this server.
//
//   npx relay app create Web --caller-auth signed-user --allow-origin http://127.0.0.1:5173
//   PUBLIC_KEY=… PRIVATE_KEY=… npx tsx docs/examples/browser/server.ts
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { createRelayClient, signUser } from "provider-call-relay-client";

const env = (name: string, fallback: string) => process.env[name] || fallback;
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

// Any bundler does.
const { outputFiles } = await build({
  entryPoints: [file("page.ts"), file("contract.ts")],
  outdir: "/",
  bundle: true,
  format: "esm",
  minify: true,
  write: false,
});

const [privateKey, publicKey, providerName] = [
  env("PRIVATE_KEY", ""),
  env("PUBLIC_KEY", ""),
  env("PROVIDER", "sandbox"),
];
const relayUrl = env("RELAY_URL", "http://127.0.0.1:8080");
const relay = createRelayClient({ url: relayUrl, publicKey, privateKey });
/** Whoever is logged in here. */
const userOf = (_request: IncomingMessage) => env("USER_ID", "ada");

/** A call token that reads alone, for the page; `user_signature` for the one with the generated contract. */
async function callerFor(userId: string): Promise<object> {
  const callToken = await relay.account(userId, providerName).token({ rules: [{ methods: ["GET"] }] });
  const apiUrl = env("API_URL", "http://127.0.0.1:8090");
  return {
    relayUrl,
    apiUrl,
    providerName,
    publicKey,
    userId,
    callToken,
    userSignature: await signUser(privateKey, userId),
  };
}

async function contentFor(request: IncomingMessage): Promise<readonly [type: string, content: string | Uint8Array]> {
  const [path = "/"] = (request.url ?? "").split("?");
  const script = outputFiles.find((each) => each.path === path);
  if (script !== undefined) return ["text/javascript", script.contents];
  if (path === "/caller.json") return ["application/json", JSON.stringify(await callerFor(userOf(request)))];
  if (path === "/connect-link" && request.method === "POST") {
    return ["text/plain", (await relay.connectLink({ userId: userOf(request), provider: providerName })).connectUri];
  }
  return ["text/html", readFileSync(file(path === "/contract" ? "contract.html" : "index.html"))];
}

const server = createServer((request, response) => {
  contentFor(request).then(
    ([type, content]) => response.setHeader("content-type", type).end(content),
    (error: Error) => response.writeHead(500).end(error.message),
  );
});
server.listen(Number(env("PORT", "5173")), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
