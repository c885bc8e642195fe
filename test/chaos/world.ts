import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Agent, request } from "undici";
import type { Connection } from "../../src/oauth/connection.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type RelayProcess, startRelayProcess } from "./relay-process.js";
import { createTokenLog, type TokenLog } from "./token-log.js";
import { openSqliteFile, type WorldDatabase } from "./world-database.js";

/** A provider with its token endpoint, a store, and as many relay processes on it as a part starts. */
export interface World {
  readonly tokens: TokenLog;
  /** Where the database is, if it is a file. */
  readonly databaseFile: string | undefined;
  /** Lines that relays logged as errors. */
  readonly faults: readonly string[];
  /** The folder of a database in SQLite. */
  readonly folder: string;
  /** Settings of the relays, for commands beside them. */
  readonly env: Readonly<Record<string, string>>;
  startRelay(): RelayProcess;
  /** Connects a user whose access token has ended; again, when there is a connection. Resolves to the user's id. */
  connect(userId?: string): Promise<string>;
  /** Lets the access token end, and touches nothing else of the row. */
  expire(userId: string): Promise<void> | void;
  /** Ends, at the provider alone, the access token that was given last. */
  revoke(userId: string): void;
  find(userId: string): Promise<Connection>;
  /** The row as it is stored, sealed tokens and all. */
  row(userId: string): Readonly<Record<string, unknown>>;
  call(url: string, userId: string, options?: CallOptions): Promise<CallResult>;
  /** `ok` for a database that is whole. */
  checkIntegrity(): string;
  /** Kills what runs and takes everything away. */
  close(): Promise<void>;
}

/** What a part may choose about a call. */
interface CallOptions {
  /** Path at the provider; `/me` by default. */
  readonly path?: string;
  readonly signal?: AbortSignal;
}

/**
 * `success`, the error type of the envelope, `refused` when there was no connection to a relay, or `unreachable` when
 * there was no answer.
 */
type CallResult = string;

/** What a part may choose about its world. */
export interface WorldOptions {
  /** A provider with no grace ends a grant when a refresh token comes twice. */
  readonly graceMs?: number;
  /** Whether it does, as by default, or only refuses that refresh token. */
  readonly endsReusedGrants?: boolean;
  /** A file of its own in SQLite by default. */
  readonly database?: WorldDatabase;
  /** Where that file is; a folder of its own by default. */
  readonly folder?: string;
  /** Further settings of the relays. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Starts one, with nothing connected. */
export async function startWorld(script: string, options: WorldOptions = {}): Promise<World> {
  const { graceMs = 0, endsReusedGrants = true, database } = options;
  const tokens = createTokenLog();
  const sandbox = { refreshGraceMs: graceMs, endsReusedGrants, holdTokenAnswer: tokens.hold, maxRequests: 1 };
  const url = database?.url ?? (options.folder && `sqlite:${join(options.folder, "relay.db")}`);
  const env = url === undefined ? {} : { RELAY_DATABASE: url };
  const harness = await startHarness({ sandbox, env, onLogLine: () => {} });
  const application = await harness.createApplication();
  await harness.putClient(application);
  const folder = options.folder ?? harness.folder;
  const db = database ?? openSqliteFile(join(folder, "relay.db"));
  const relayEnv = { ...environmentOf(harness, db), ...options.settings };
  const agent = new Agent({ headersTimeout: 60_000, keepAliveTimeout: 1000 });
  const faults: string[] = [];
  const relays: RelayProcess[] = [];
  return {
    tokens,
    databaseFile: database === undefined ? join(harness.folder, "relay.db") : undefined,
    faults,
    folder,
    env: relayEnv,
    startRelay() {
      const relay = startRelayProcess(script, relayEnv, (line) => faults.push(line));
      relays.push(relay);
      return relay;
    },
    async connect(userId = randomUUID()) {
      const refreshToken = harness.sandbox.issueToken().refresh_token;
      tokens.learn(refreshToken, userId);
      await harness.connect(application, userId, { refreshToken, expiresAt: 1 });
      return userId;
    },
    expire: (userId) => db.expire(userId),
    revoke(userId) {
      const given = tokens.exchanges.findLast((exchange) => exchange.userId === userId && exchange.accessToken !== "");
      if (given !== undefined) harness.sandbox.revoke(given.accessToken);
    },
    async find(userId) {
      const key = { applicationId: application.id, userId, providerName: "sandbox" };
      return (await harness.store.connections.find(key)) as Connection;
    },
    row: (userId) => db.row(userId),
    call: (url, userId, options) =>
      call(agent, `${url}/oauth/method/sandbox/call?user_id=${userId}&public_key=${application.publicKey}`, {
        url: harness.sandbox.origin + (options?.path ?? "/me"),
        signal: options?.signal,
      }),
    checkIntegrity: () => db.checkIntegrity(),
    async close() {
      for (const relay of relays) relay.kill("SIGKILL");
      await Promise.all(relays.map(({ exited }) => exited));
      await agent.destroy();
      await harness.close();
      await db.close();
    },
  };
}

function environmentOf({ folder }: Harness, { url }: WorldDatabase): Record<string, string> {
  return {
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "off",
    RELAY_DATABASE: url,
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_SPOOL: join(folder, "spool"),
    RELAY_PROVIDERS: join(folder, "provider-0.json"),
    RELAY_ALLOW_LOOPBACK: "true",
  };
}

async function call(
  dispatcher: Agent,
  target: string,
  { url, signal }: { readonly url: string; readonly signal: AbortSignal | undefined },
): Promise<CallResult> {
  const body = JSON.stringify({ url, method: "GET" });
  const headers = { "content-type": "application/json" };
  try {
    const answer = await request(target, { method: "POST", dispatcher, headers, body, signal: signal ?? null });
    const [row] = JSON.parse(await answer.body.text()).rows;
    return row.pincStatus === "success"
      ? "success"
      : `${row.errorType}${row.errorType === "API_ERROR" ? ` ${row.statusCode}` : ""}`;
  } catch (error) {
    // A relay that was killed, or a caller that left: both are what a run is about.
    return error instanceof Error && "code" in error && error.code === "ECONNREFUSED" ? "refused" : "unreachable";
  }
}
