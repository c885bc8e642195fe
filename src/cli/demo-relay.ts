import { rmSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApplication, NEW_APPLICATION } from "../admin/applications.js";
import { putConnection } from "../admin/connections.js";
import { type OAuthClientFields, putOAuthClient } from "../admin/oauth-client-service.js";
import { type Service, startService } from "../app/server.js";
import { type Config, parseConfig } from "../config/config.js";
import { parseTokenResponse } from "../oauth/token-response.js";
import { type Sandbox, startSandbox } from "../sandbox/sandbox.js";
import { Secret } from "../sealing/seal.js";
import { createLog } from "../telemetry/log.js";
import { type CallRequestText, type CallRow, type CallTarget, jsonBodyFrom, messageJsonFrom } from "./call-row.js";
import { callOverRest, callOverRpc, type RpcProtocol, restUrl, rpcUrl } from "./call-rpc.js";
import { usageError, writeJson, writeLine } from "./command.js";
import { administrationOf, loadCatalog, requireProvider, withStoreOf } from "./open-store.js";
import { freePort } from "./start.js";

/** A relay with one application, one user and one connection. */
export interface DemoRelay {
  readonly relayUrl: string;
  readonly adminUrl: string;
  /** An operator's token, valid only for this demo. */
  readonly adminToken: string;
  readonly sandboxOrigin: string;
  readonly publicKey: string;
  readonly userId: string;
  readonly providerName: string;
  /** Waits at most `graceMs` milliseconds for calls to finish, then removes everything. */
  close(graceMs: number): Promise<void>;
}

const PROVIDER_NAME = "sandbox";
const USER_ID = "ada";
/** The same each time, so that command lines can be reused. It gives access only to the sandbox of a running demo. */
const PUBLIC_KEY = "demo-public-key-for-the-sandbox-only";
const ADMIN_PORT = 8081;
const SANDBOX_PORT = 8090;
/** Long enough that a demo left running overnight still has a valid token. */
const TOKEN_LIFETIME_SECONDS = 7 * 24 * 60 * 60;

/**
 * Starts the sandbox provider and a relay on loopback. Both other ports are the usual ones or the next free ones; with
 * port 0 the system chooses all. When the port is taken, it cleans up and rejects.
 */
export async function startDemo(port: number): Promise<DemoRelay> {
  const folder = await mkdtemp(join(tmpdir(), "relay-demo-"));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  // Also covers a second signal that ends the process at any point.
  process.once("exit", removeFolder);
  const adminPort = port === 0 ? 0 : await freePort(ADMIN_PORT, port);
  const sandbox = await startSandbox({ port: port === 0 ? 0 : await freePort(SANDBOX_PORT, port, adminPort) });
  let service: Service | undefined;
  const close = async (graceMs: number) => {
    await service?.close(graceMs);
    await sandbox.close();
    removeFolder();
    process.off("exit", removeFolder);
  };
  try {
    const config = await prepareConfig(folder, { port, adminPort }, sandbox);
    service = await startService(config, createLog(config.logLevel));
    const publicKey = await connectUser(config, sandbox);
    const { url: relayUrl, adminUrl = "" } = service;
    const adminToken = await readAdminToken(config);
    const user = { publicKey, userId: USER_ID, providerName: PROVIDER_NAME };
    return { relayUrl, adminUrl, adminToken, sandboxOrigin: sandbox.origin, ...user, close };
  } catch (error) {
    await close(0);
    throw error;
  }
}

/** Takes only the log level from the environment, so that the demo is the same on every machine. */
async function prepareConfig(
  folder: string,
  { port, adminPort }: { readonly port: number; readonly adminPort: number },
  sandbox: Sandbox,
): Promise<Config> {
  const definition = join(folder, "sandbox.json");
  await writeFile(definition, JSON.stringify(sandbox.providerDefinition(PROVIDER_NAME)));
  const parsed = parseConfig({
    RELAY_LISTEN: `127.0.0.1:${port}`,
    RELAY_ADMIN_LISTEN: `127.0.0.1:${adminPort}`,
    RELAY_ADMIN_TOKEN_FILE: join(folder, "admin.tokens"),
    RELAY_DATABASE: `sqlite:${join(folder, "relay.db")}`,
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_PROVIDERS: definition,
    RELAY_ALLOW_LOOPBACK: "true",
    RELAY_LOG_LEVEL: process.env["RELAY_LOG_LEVEL"] || "warn",
  });
  if ("problems" in parsed) throw usageError(parsed.problems.join("\n"));
  return parsed.config;
}

/** The admin token that the service created at start. */
async function readAdminToken({ adminTokenFile }: Config): Promise<string> {
  return /^operator operator (\S+)$/m.exec(await readFile(adminTokenFile, "utf8"))?.[1] ?? "";
}

/** Does the same as `relay app create` and `relay connection put`, with the same code. */
async function connectUser(config: Config, sandbox: Sandbox): Promise<string> {
  const provider = requireProvider(await loadCatalog(config), PROVIDER_NAME);
  const response = parseTokenResponse(JSON.stringify(sandbox.issueToken({ expiresInSeconds: TOKEN_LIFETIME_SECONDS })));
  return withStoreOf(config, async (open) => {
    const administration = administrationOf(open);
    const input = { name: "Demo", publicKey: PUBLIC_KEY, ...NEW_APPLICATION };
    const { application } = await createApplication(administration, input);
    await putOAuthClient(administration, { application, providerName: provider.name }, clientOf(sandbox));
    const content = { response, originParameters: {}, told: () => "" };
    await putConnection(administration, { application, userId: USER_ID, provider, ...content });
    return application.publicKey;
  });
}

function clientOf({ client }: Sandbox): OAuthClientFields {
  const clientSecret = client.client_secret === undefined ? undefined : new Secret(client.client_secret);
  return { clientId: client.client_id, clientSecret, scope: "", originParameters: {} };
}

/** Command lines to paste into another terminal, in the folder of the checkout. */
export function demoLines(relay: DemoRelay): string {
  const { relayUrl, adminUrl, adminToken, sandboxOrigin, providerName, publicKey, userId } = relay;
  const url = `${sandboxOrigin}/me`;
  const request = { providerName, publicKey, userId, url, method: "GET", payload: undefined, headers: {} };
  const target = { relayUrl, privateKey: undefined, responseMode: "data" } as const;
  const message = `-d ${quoted(messageJsonFrom(request))} ${rpcUrl(relayUrl)}`;
  return `
--- Your turn. Ctrl-C ends the demo. ---

Watch the calls in the console, in a browser:
  ${adminUrl}/
It asks for an admin token. This demo's token is
  ${adminToken}

Paste the rest into another terminal, in this folder.

JSON route:
  curl ${quoted(restUrl(request, target))} -d ${quoted(jsonBodyFrom(request))}

The relay's own client:
  npx relay call ${providerName} --app ${publicKey} --user ${userId} --relay ${relayUrl} ${url}

Typed, with the schema in this folder:
  npx buf curl --schema proto --protocol grpc --http2-prior-knowledge ${message}
  npx buf curl --schema proto --protocol grpcweb ${message}
  npx buf curl --schema proto --protocol connect ${message}

Typed, with server reflection:
  npx buf curl --protocol grpc --http2-prior-knowledge ${message}
  npx buf curl --protocol grpcweb --http2-prior-knowledge ${message}
  npx buf curl --protocol connect --http2-prior-knowledge ${message}

Connect an account for another user, in a browser:
  ${relayUrl}/oauth/connect?public_key=${publicKey}&user_id=grace

Administer, with the same token:
  export ADMIN_TOKEN=${adminToken}
  curl ${adminUrl}/relay.admin.v1.ApplicationService/ListApplications -H "authorization: Bearer $ADMIN_TOKEN" -H 'content-type: application/json' -d '{}'
`;
}

/** Quotes an argument for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

interface DemoCall {
  readonly protocol: string;
  /** The address, and the JSON that is sent or that represents the message. */
  readonly where: string;
  readonly sent: string;
  readonly perform: () => Promise<CallRow>;
}

/** Makes one call over each protocol and prints request and answer. Resolves to the number of failed calls. */
export async function makeDemoCalls(relay: DemoRelay, { json }: { readonly json: boolean }): Promise<number> {
  if (!json) writeLine(introduction(relay));
  let failed = 0;
  for (const call of demoCalls(relay)) {
    const { row, json: received } = await call.perform();
    if (row.pincStatus !== "success") failed++;
    if (json) writeJson({ protocol: call.protocol, sent: JSON.parse(call.sent), received: JSON.parse(received) });
    else writeLine(textFrom(call, received));
  }
  return failed;
}

function demoCalls(relay: DemoRelay): readonly DemoCall[] {
  const { relayUrl, sandboxOrigin } = relay;
  const target: CallTarget = { relayUrl, privateKey: undefined, responseMode: "data" };
  const profile = requestTo(relay, "GET", `${sandboxOrigin}/me`);
  const list = requestTo(relay, "GET", `${sandboxOrigin}/items?count=2`);
  const message = requestTo(relay, "POST", `${sandboxOrigin}/chat.postMessage`, '{"channel":"#general","text":"hi"}');
  const rest = {
    protocol: "REST",
    where: `POST ${restUrl(profile, target)}`,
    sent: jsonBodyFrom(profile),
    perform: () => callOverRest(profile, target),
  };
  return [rest, rpcCall("Connect", list, target, "connect"), rpcCall("gRPC", message, target, "grpc")];
}

function rpcCall(name: string, request: CallRequestText, target: CallTarget, protocol: RpcProtocol): DemoCall {
  return {
    protocol: name,
    where: rpcUrl(target.relayUrl),
    sent: messageJsonFrom(request),
    perform: () => callOverRpc(request, target, protocol),
  };
}

function requestTo(relay: DemoRelay, method: string, url: string, payload?: string): CallRequestText {
  const { providerName, publicKey, userId } = relay;
  return { providerName, publicKey, userId, method, url, payload, headers: {} };
}

function introduction({ relayUrl, adminUrl, sandboxOrigin, userId, providerName, publicKey }: DemoRelay): string {
  return `The sandbox provider is at ${sandboxOrigin}, the relay at ${relayUrl}.
Its console and its administration port are at ${adminUrl}.
User "${userId}" of the application ${publicKey} is connected to "${providerName}":
the relay holds the access token, sealed. No caller ever sees it.`;
}

function textFrom({ protocol, where, sent }: DemoCall, received: string): string {
  return `
--- ${protocol} ---
sent to ${where}
${indented(sent)}
received
${indented(`{"rows":[${received}]}`)}`;
}

function indented(json: string): string {
  return JSON.stringify(JSON.parse(json), undefined, 2).replace(/^/gm, "  ");
}
