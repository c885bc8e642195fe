import { type ChildProcess, execFileSync, type StdioOptions } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { startPostgresServer } from "../support/postgres-server.js";
import { type BenchKeys, PROVIDER_NAME } from "./bench-store.js";
import { RELAY_SCRIPT, REPOSITORY, scriptOf } from "./build.js";
import { nextMessage, startPinned, stopPinned } from "./pinned-process.js";
import { ownNameOf, type Setup, type SubjectName } from "./points.js";
import { TOKEN_PATH } from "./processes/content.js";
import type { Providers } from "./providers.js";

/** A server under test, in a process of its own. */
export interface Subject {
  readonly name: SubjectName;
  readonly port: number;
  readonly pid: number;
  readonly child: ChildProcess;
  /** The relay's application; empty for the others. */
  readonly publicKey: string;
  /** The same; signs call tokens. */
  readonly privateKey: string;
  /** How many users are connected. */
  readonly users: number;
  /** How many are besides whose tokens have ended. */
  readonly endedUsers: number;
  close(): Promise<void>;
}

/** A relay that is measured. */
interface RelayKind {
  readonly connections: number;
  readonly ended?: number;
  /** What differs from the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A script that is loaded before it. */
  readonly preloaded?: string;
  readonly isInPostgres?: boolean;
}

/** As it is by default. */
const ADMINISTERED = { RELAY_ADMIN_LISTEN: "127.0.0.1:0" };

const RELAYS: Partial<Record<SubjectName, RelayKind>> = {
  relay: { connections: 1_000 },
  "relay-quiet": { connections: 1_000, settings: { RELAY_METRICS: "off", RELAY_CALL_RECORDS: "off" } },
  "relay-unrested": { connections: 1_000, settings: { RELAY_UPSTREAM_QUIET_MS: "0" } },
  "relay-traced": {
    connections: 1_000,
    settings: {
      RELAY_TRACES: "on",
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.01",
    },
    preloaded: "tracing",
  },
  "relay-refreshing": { connections: 1_000, ended: 50_000 },
  "relay-workers": { connections: 1_000, settings: { RELAY_WORKERS: "2" } },
  "relay-administered": { connections: 1_000, settings: ADMINISTERED },
  "relay-administered-workers": { connections: 1_000, settings: { ...ADMINISTERED, RELAY_WORKERS: "2" } },
  "relay-postgres": { connections: 1_000, isInPostgres: true },
  "relay-million": { connections: 1_000_000 },
  "relay-postgres-million": { connections: 1_000_000, isInPostgres: true },
};
const SCRIPTS: Partial<Record<SubjectName, string>> = {
  bare: "bare",
  fastify: "fastify-proxy",
  "http-proxy": "http-proxy",
  "grpc-js": "grpc-relay",
};
const START_TIMEOUT_MS = 60_000;

/**
 * Starts a subject in front of the provider. `direct` is the provider itself, and not started here.
 *
 * @param checkout where the relay's script is.
 */
export function startSubject(
  name: SubjectName,
  providers: Providers,
  setup: Setup,
  checkout = REPOSITORY,
): Promise<Subject> {
  const kind = RELAYS[ownNameOf(name)];
  return kind === undefined
    ? startComparison(name, providers, setup)
    : startRelay(name, kind, { providers, setup, checkout });
}

async function startComparison(name: SubjectName, providers: Providers, setup: Setup): Promise<Subject> {
  const child = startPinned({
    core: "measured",
    args: [...preload("loop-hold"), scriptOf(SCRIPTS[name] ?? name)],
    env: {
      ...providers.trust,
      PROVIDER: providers[setup.provider].origin,
      ...(setup.callers === "tls" ? { TLS: JSON.stringify(providers.tls) } : {}),
    },
  });
  const { port } = await nextMessage<{ port: number }>(child);
  return {
    name,
    port,
    pid: child.pid as number,
    child,
    publicKey: "",
    privateKey: "",
    users: 0,
    endedUsers: 0,
    close: () => stopPinned(child),
  };
}

/** The relay as it is run: built, on a SQLite file, with its settings' defaults, its log in a file. */
async function startRelay(
  name: SubjectName,
  { connections: users, ended: endedUsers = 0, settings, preloaded, isInPostgres = false }: RelayKind,
  { providers, setup, checkout }: { providers: Providers; setup: Setup; checkout: string },
): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "relay-bench-"));
  const { publicKey, privateKey } = createStore(checkout, folder, users, endedUsers);
  const own = { ...environmentOf(folder, providers, setup), ...settings };
  const { env, closeDatabase } = isInPostgres ? await inPostgres(own) : { env: own, closeDatabase: async () => {} };
  const log = join(folder, "log");
  const output = openSync(log, "a");
  const extra = process.env["BENCH_NODE_ARGS"]?.split(" ") ?? [];
  const child = startPinned({
    core: "measured",
    cwd: checkout,
    args: [...preload("loop-hold"), ...preload(preloaded), ...extra, RELAY_SCRIPT, "serve"],
    env,
    output,
  });
  closeSync(output);
  const close = async () => {
    await stopPinned(child);
    await closeDatabase();
    rmSync(folder, { recursive: true, force: true });
  };
  const port = await listeningPort(child, log).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { name, port, pid: child.pid as number, child, publicKey, privateKey, users, endedUsers, close };
}

/** A larger store is made once for each schema, and kept beside the other temporary files. */
const KEPT_CONNECTIONS = 100_000;

function createStore(checkout: string, folder: string, ...counts: readonly number[]): BenchKeys {
  if (Math.max(...counts) < KEPT_CONNECTIONS) return makeStore(checkout, folder, ...counts);
  const hash = createHash("sha256").update(readFileSync(join(checkout, "src/store/schema.ts")));
  const kept = join(tmpdir(), `relay-bench-store-${counts.join("-")}-${hash.digest("hex").slice(0, 12)}`);
  const keysFile = join(kept, "keys.json");
  if (!existsSync(keysFile)) {
    rmSync(kept, { recursive: true, force: true });
    mkdirSync(kept);
    writeFileSync(keysFile, JSON.stringify(makeStore(checkout, kept, ...counts)));
  }
  cpSync(kept, folder, { recursive: true });
  return JSON.parse(readFileSync(keysFile, "utf8")) as BenchKeys;
}

/** By the checkout's own code, whose schema it has. */
function makeStore(checkout: string, folder: string, ...counts: readonly number[]): BenchKeys {
  const source = `const { createBenchStore } = await import("./test/bench/bench-store.ts");
    const [folder, ...counts] = process.argv.slice(1);
    console.log(JSON.stringify(await createBenchStore(folder, ...counts.map(Number))));`;
  const args = ["--import", "tsx", "--input-type=module", "--eval", source, folder, ...counts.map(String)];
  const stdio: StdioOptions = ["ignore", "pipe", 2];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: checkout, encoding: "utf8", stdio })) as BenchKeys;
}

function preload(script: string | undefined): string[] {
  return script === undefined ? [] : ["--import", pathToFileURL(join(REPOSITORY, scriptOf(script))).href];
}

/** The same store, copied into a PostgreSQL next door. */
async function inPostgres(env: Readonly<Record<string, string>>) {
  const server = await startPostgresServer();
  const moved = { ...env, RELAY_DATABASE: server.url };
  execFileSync(process.execPath, [RELAY_SCRIPT, "db", "copy", "--from", env["RELAY_DATABASE"] ?? ""], {
    env: { ...process.env, ...moved },
  });
  return { env: moved, closeDatabase: server.close };
}

function environmentOf(folder: string, providers: Providers, setup: Setup): Record<string, string> {
  const definitions = join(folder, "providers");
  mkdirSync(definitions);
  const { origin } = providers[setup.provider];
  const oauth2 = { authorizationEndpoint: `${origin}/authorize`, tokenEndpoint: origin + TOKEN_PATH };
  const definition = { name: PROVIDER_NAME, apiOrigins: [origin], oauth2 };
  writeFileSync(join(definitions, `${PROVIDER_NAME}.json`), JSON.stringify(definition));
  const { cert, key } = providers.tlsFiles;
  return {
    ...providers.trust,
    ...(setup.callers === "tls" ? { RELAY_TLS_CERT: cert, RELAY_TLS_KEY: key } : {}),
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "off",
    RELAY_ADMIN_TOKEN_FILE: join(folder, "admin.tokens"),
    RELAY_DATABASE: `sqlite:${join(folder, "relay.db")}`,
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_PROVIDERS: definitions,
    RELAY_ALLOW_LOOPBACK: "true",
  };
}

async function listeningPort(child: ChildProcess, log: string): Promise<number> {
  for (const until = performance.now() + START_TIMEOUT_MS; performance.now() < until; await delay(50)) {
    const url = /"url":"([^"]+)".*"msg":"listening"/.exec(readFileSync(log, "utf8"))?.[1];
    if (url !== undefined) return Number(new URL(url).port);
    if (child.exitCode !== null) break;
  }
  throw new Error(`the relay did not start: ${readFileSync(log, "utf8")}`);
}
