import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import type { ServiceOptions } from "../../src/app/parts.js";
import { type Service, startService } from "../../src/app/server.js";
import {
  type CallerAuth,
  createPrivateKey,
  createPublicKey,
  sealPrivateKeyHash,
} from "../../src/applications/application.js";
import type { CallRulesByProvider } from "../../src/applications/call-rules.js";
import { type Config, parseConfig } from "../../src/config/config.js";
import { sealClientSecret } from "../../src/oauth/oauth-client.js";
import { newConnectionFrom } from "../../src/oauth/store-answer.js";
import { parseTokenResponse } from "../../src/oauth/token-response.js";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer, type Sealer, Secret } from "../../src/sealing/seal.js";
import { openStore } from "../../src/store/open-store.js";
import type { Store } from "../../src/store/store.js";
import { putOAuthClient } from "./put-oauth-client.js";
import { type Sandbox, type SandboxOptions, startSandbox } from "./sandbox.js";
import { startWorkers } from "./workers.js";

/** What a test may choose about its relay. */
export interface HarnessOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Further definitions, as ProtoJSON objects. */
  readonly providers?: readonly object[];
  /** The same, for those that need the sandbox's origin. */
  readonly definitionsFor?: (sandboxOrigin: string) => readonly object[];
  readonly upstream?: ServiceOptions["upstream"];
  readonly sandbox?: SandboxOptions;
  /** Takes each line logged; `logLines` then stays empty, for runs whose log would fill the memory. */
  readonly onLogLine?: (line: string) => void;
}

/** Admin tokens of every harness. */
export const ADMIN_TOKENS = {
  operator: "CANARY_operator_token_of_the_harness_only",
  readOnly: "CANARY_read_only_token_of_the_harness_only",
} as const;

/** An application as a test creates one. */
export interface TestApplication {
  readonly id: string;
  readonly publicKey: string;
  readonly privateKey: string;
}

/** An OAuth client as its server names it (RFC 6749 section 2.3.1). */
export interface TestClient {
  readonly client_id: string;
  readonly client_secret?: string | undefined;
  readonly scope?: string;
  readonly originParameters?: Readonly<Record<string, string>>;
}

/** A relay on a real database, with the sandbox provider behind it. */
export interface Harness {
  readonly folder: string;
  readonly url: string;
  /** Of the administration port. */
  readonly adminUrl: string;
  readonly sandbox: Sandbox;
  readonly store: Store;
  readonly sealer: Sealer;
  /** Every line logged so far; what workers log comes a moment later. */
  readonly logLines: readonly string[];
  createApplication(options?: {
    name?: string;
    callerAuth?: CallerAuth;
    allowedOrigins?: readonly string[];
    allowedAddresses?: readonly string[];
    allowedRedirectUris?: readonly string[];
    callsPerMinute?: number;
    connectionCallsPerMinute?: number;
    callRules?: CallRulesByProvider;
    maxCallTokenSeconds?: number;
    accentColor?: string;
    state?: "ACTIVE" | "DISABLED";
    captureUntil?: number;
  }): Promise<TestApplication>;
  /** Connects a user with an access token that the sandbox takes; returns the token. */
  connect(application: TestApplication, userId: string, options?: ConnectOptions): Promise<string>;
  /** Stores the OAuth client of an application, the sandbox's unless told, so that its tokens can be refreshed. */
  putClient(application: TestApplication, providerName?: string, client?: Partial<TestClient>): Promise<void>;
  /** Another relay on the same files, as a second process would be; closed with the harness. */
  startPeer(options?: Pick<ServiceOptions, "fastPath">): Promise<string>;
  /** Administration ports of the peers, in order. */
  readonly peerAdminUrls: readonly string[];
  /** Stops the relay alone, with a grace of a second. */
  closeRelay(): Promise<void>;
  close(): Promise<void>;
}

/** What a test may choose about a connection. */
export interface ConnectOptions {
  readonly providerName?: string;
  readonly accessToken?: string;
  readonly refreshToken?: string;
  readonly idToken?: string;
  readonly expiresAt?: number;
  readonly originParameters?: Readonly<Record<string, string>>;
}

/**
 * Starts everything on free ports of 127.0.0.1. The relay runs in the process of the test; with TEST_WORKERS, which
 * test/workers sets, as that number of workers under their supervisor.
 */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const folder = mkdtempSync(join(tmpdir(), "relay-test-"));
  const sandbox = await startSandbox(options.sandbox);
  const database = await createDatabase(folder);
  const env = { ...settingsFor(folder, sandbox, options), RELAY_DATABASE: database.url, ...options.env };
  const config = configFrom(env);
  const logLines: string[] = [];
  const peerAdminUrls: string[] = [];
  const onLogLine = options.onLogLine ?? ((line: string) => void logLines.push(line));
  const service =
    process.env["TEST_WORKERS"] === undefined
      ? await startService(config, { logger: loggerTo(onLogLine), ...upstreamOf(options) })
      : await startWorkers({ ...env, RELAY_WORKERS: process.env["TEST_WORKERS"] }, onLogLine);
  const sealer = createSealer(await loadKeyring(config.keyFile, { mustExist: true }));
  const store = await openStore(config);
  const peers: Service[] = [];
  let closing: Promise<void> | undefined;
  const closeRelay = () => {
    closing ??= service.close(1000);
    return closing;
  };
  return {
    folder,
    url: service.url,
    adminUrl: service.adminUrl ?? "",
    sandbox,
    store,
    sealer,
    logLines,
    createApplication: (application) => createApplication(store, sealer, application ?? {}),
    connect: (application, userId, connection) =>
      connect(store, sealer, sandbox, { application, userId, ...connection }),
    putClient: (application, providerName = "sandbox", client = {}) =>
      putClient(store, sealer, { applicationId: application.id, providerName }, { ...sandbox.client, ...client }),
    peerAdminUrls,
    startPeer: async (more) => {
      const peer = await startService(config, { logger: loggerTo(onLogLine), ...upstreamOf(options), ...more });
      peers.push(peer);
      peerAdminUrls.push(peer.adminUrl ?? "");
      return peer.url;
    },
    closeRelay,
    async close() {
      await closeAll([...peers, { close: closeRelay }], sandbox, store, folder);
      await database.remove();
    },
  };
}

/** A file in the folder; with TEST_DATABASE=postgres, which test/postgres sets, a database in PostgreSQL. */
async function createDatabase(folder: string): Promise<{ readonly url: string; remove(): Promise<void> }> {
  if (process.env["TEST_DATABASE"] !== "postgres") {
    return { url: `sqlite:${join(folder, "relay.db")}`, remove: async () => {} };
  }
  // Asks vitest for it, which is not there outside of the tests.
  const { createTestDatabase } = await import("./postgres.js");
  return createTestDatabase();
}

function settingsFor(folder: string, sandbox: Sandbox, options: HarnessOptions): Readonly<Record<string, string>> {
  const { operator, readOnly } = ADMIN_TOKENS;
  writeFileSync(join(folder, "admin.tokens"), `alice operator ${operator}\nbob read-only ${readOnly}\n`);
  const definitions = [
    sandbox.providerDefinition("sandbox"),
    ...(options.providers ?? []),
    ...(options.definitionsFor?.(sandbox.origin) ?? []),
  ];
  const files = definitions.map((definition, at) => {
    const file = join(folder, `provider-${at}.json`);
    writeFileSync(file, JSON.stringify(definition));
    return file;
  });
  return {
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_TOKEN_FILE: join(folder, "admin.tokens"),
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_SPOOL: join(folder, "spool"),
    RELAY_PROVIDERS: files.join(":"),
    RELAY_ALLOW_LOOPBACK: "true",
    RELAY_LOG_LEVEL: "trace",
  };
}

function configFrom(env: Readonly<Record<string, string>>): Config {
  const parsed = parseConfig(env);
  if ("problems" in parsed) throw new Error(parsed.problems.join("\n"));
  return parsed.config;
}

function upstreamOf({ upstream }: HarnessOptions): Pick<ServiceOptions, "upstream"> {
  return upstream === undefined ? {} : { upstream };
}

function loggerTo(onLine: (line: string) => void) {
  const sink = new Writable({
    write(chunk, _encoding, done) {
      onLine(String(chunk));
      done();
    },
  });
  return pino({ level: "trace", base: null }, sink);
}

async function putClient(
  store: Store,
  sealer: Sealer,
  key: { readonly applicationId: string; readonly providerName: string },
  { client_id, client_secret, scope = "", originParameters = {} }: TestClient,
): Promise<void> {
  await putOAuthClient(store.oauthClients, {
    id: randomUUID(),
    ...key,
    clientId: client_id,
    scope,
    originParameters,
    clientSecret: client_secret === undefined ? undefined : sealClientSecret(sealer, key, new Secret(client_secret)),
    updatedAt: Date.now(),
  });
}

async function closeAll(
  services: readonly Pick<Service, "close">[],
  sandbox: Sandbox,
  store: Store,
  folder: string,
): Promise<void> {
  for (const service of services) await service.close(1000);
  await sandbox.close();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Stores an application that calls with its public key alone, unless the options say otherwise. */
export async function createApplication(
  store: Store,
  sealer: Sealer,
  options: NonNullable<Parameters<Harness["createApplication"]>[0]>,
): Promise<TestApplication> {
  const id = randomUUID();
  const publicKey = createPublicKey();
  const privateKey = createPrivateKey();
  await store.applications.create({
    id,
    name: options.name ?? "test",
    publicKey,
    privateKeyHash: sealPrivateKeyHash(sealer, id, privateKey),
    callerAuth: options.callerAuth ?? "PUBLIC_KEY",
    allowedOrigins: options.allowedOrigins ?? [],
    allowedAddresses: options.allowedAddresses ?? [],
    allowedRedirectUris: options.allowedRedirectUris ?? [],
    callsPerMinute: options.callsPerMinute ?? 0,
    connectionCallsPerMinute: options.connectionCallsPerMinute ?? 0,
    callRules: options.callRules ?? {},
    maxCallTokenSeconds: options.maxCallTokenSeconds ?? 0,
    accentColor: options.accentColor ?? "",
    state: options.state ?? "ACTIVE",
    captureUntil: options.captureUntil ?? 0,
    createdAt: Date.now(),
    updatedAt: Date.now(),
  });
  return { id, publicKey, privateKey };
}

/** Stores a connection with a token that the sandbox is told to take; returns the token. */
export async function connect(
  store: Store,
  sealer: Sealer,
  sandbox: Pick<Sandbox, "acceptToken">,
  options: ConnectOptions & { readonly application: TestApplication; readonly userId: string },
): Promise<string> {
  const accessToken = options.accessToken ?? `CANARY_${randomBytes(24).toString("base64url")}`;
  sandbox.acceptToken(accessToken);
  const expiresAt = options.expiresAt;
  const connection = newConnectionFrom(sealer, {
    id: randomUUID(),
    key: {
      applicationId: options.application.id,
      userId: options.userId,
      providerName: options.providerName ?? "sandbox",
    },
    response: parseTokenResponse(
      JSON.stringify({ access_token: accessToken, refresh_token: options.refreshToken, id_token: options.idToken }),
    ),
    defaultExpiresInS: undefined,
    originParameters: options.originParameters ?? {},
    obtainedAt: Date.now(),
  });
  await store.connections.put({ ...connection, expiresAt }, Date.now());
  return accessToken;
}
