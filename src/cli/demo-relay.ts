import { rmSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApplication } from "../admin/applications.js";
import { putConnection } from "../admin/connections.js";
import { type OAuthClientFields, putOAuthClient } from "../admin/oauth-client-service.js";
import { type Service, startService } from "../app/server.js";
import { type Config, parseConfig } from "../config/config.js";
import { parseTokenResponse } from "../oauth/token-response.js";
import { type Sandbox, startSandbox } from "../sandbox/sandbox.js";
import { Secret } from "../sealing/secret.js";
import { createLog } from "../telemetry/log.js";
import { usageError } from "./command.js";
import { administrationOf, loadCatalog, withStoreOf } from "./open-store.js";

/** A relay with one application, one user and one connection. */
export interface DemoRelay {
  readonly relayUrl: string;
  readonly adminUrl: string;
  /** Of an operator; opens nothing but this demo. */
  readonly adminToken: string;
  readonly sandboxOrigin: string;
  readonly publicKey: string;
  readonly userId: string;
  readonly providerName: string;
  /** Lets calls finish for at most `graceMs` milliseconds, then removes everything. */
  close(graceMs: number): Promise<void>;
}

const PROVIDER_NAME = "sandbox";
const USER_ID = "ada";
/** The same each time, so that command lines can be kept; it opens nothing but the sandbox of a running demo. */
const PUBLIC_KEY = "demo-public-key-for-the-sandbox-only";
const ADMIN_PORT = 8081;
const SANDBOX_PORT = 8090;
/** Whoever leaves the demo running overnight still has a token. */
const TOKEN_LIFETIME_SECONDS = 7 * 24 * 60 * 60;

/** Starts the sandbox provider and a relay on loopback. Rejects, with nothing left behind, when the port is taken. */
export async function startDemo(port: number): Promise<DemoRelay> {
  const folder = await mkdtemp(join(tmpdir(), "relay-demo-"));
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  // Also when a second signal ends the process in the middle of something.
  process.once("exit", removeFolder);
  const sandbox = await startSandboxNear(port);
  let service: Service | undefined;
  const close = async (graceMs: number) => {
    await service?.close(graceMs);
    await sandbox.close();
    removeFolder();
    process.off("exit", removeFolder);
  };
  try {
    const config = await prepareConfig(folder, port, sandbox);
    service = await startServiceNear(config);
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

/** On its usual port when the relay has one; on a free one otherwise, or when that is taken. */
async function startSandboxNear(port: number): Promise<Sandbox> {
  if (port === 0) return startSandbox();
  try {
    return await startSandbox({ port: SANDBOX_PORT });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return startSandbox();
  }
}

/** With its administration port on a free one when the usual one is taken. */
async function startServiceNear(config: Config): Promise<Service> {
  const options = createLog(config.logLevel);
  try {
    return await startService(config, options);
  } catch (error) {
    const { code, port } = error as NodeJS.ErrnoException & { readonly port?: number };
    if (code !== "EADDRINUSE" || port !== ADMIN_PORT) throw error;
    return startService({ ...config, adminListen: { host: "127.0.0.1", port: 0 } }, options);
  }
}

/** Only the log level comes from the environment: the demo is the same on every machine. */
async function prepareConfig(folder: string, port: number, sandbox: Sandbox): Promise<Config> {
  const definition = join(folder, "sandbox.json");
  await writeFile(definition, JSON.stringify(sandbox.providerDefinition(PROVIDER_NAME)));
  const parsed = parseConfig({
    RELAY_LISTEN: `127.0.0.1:${port}`,
    RELAY_ADMIN_LISTEN: `127.0.0.1:${port === 0 ? 0 : ADMIN_PORT}`,
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

/** The one that the service made at its start. */
async function readAdminToken({ adminTokenFile }: Config): Promise<string> {
  return /^operator operator (\S+)$/m.exec(await readFile(adminTokenFile, "utf8"))?.[1] ?? "";
}

/** What an operator does with `relay app create` and `relay connection put`, by the same code. */
async function connectUser(config: Config, sandbox: Sandbox): Promise<string> {
  const provider = (await loadCatalog(config)).find(PROVIDER_NAME);
  if (provider === undefined) throw new Error("the sandbox is not in the catalogue");
  const response = parseTokenResponse(JSON.stringify(sandbox.issueToken({ expiresInSeconds: TOKEN_LIFETIME_SECONDS })));
  return withStoreOf(config, async (open) => {
    const administration = administrationOf(open);
    const { application } = await createApplication(administration, {
      name: "Demo",
      publicKey: PUBLIC_KEY,
      callerAuth: "PUBLIC_KEY",
      allowedOrigins: [],
      allowedAddresses: [],
      allowedRedirectUris: [],
      callsPerMinute: 0,
      connectionCallsPerMinute: 0,
      state: "ACTIVE",
    });
    await putOAuthClient(administration, { application, providerName: provider.name }, clientOf(sandbox));
    await putConnection(administration, { application, userId: USER_ID, provider, originParameters: {}, response });
    return application.publicKey;
  });
}

function clientOf({ client }: Sandbox): OAuthClientFields {
  const clientSecret = client.client_secret === undefined ? undefined : new Secret(client.client_secret);
  return { clientId: client.client_id, clientSecret, scope: "", originParameters: {} };
}
