import { type ChildProcess, execFileSync, type StdioOptions } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { startPostgresServer } from "../support/postgres-server.js";
import { type BenchKeys, PROVIDER_NAME } from "./bench-store.js";
import { RELAY_SCRIPT, REPOSITORY, scriptOf } from "./build.js";
import { nextMessage, startPinned, stopPinned } from "./pinned-process.js";
import type { SubjectName } from "./points.js";

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
  close(): Promise<void>;
}

const CONNECTIONS: Partial<Record<SubjectName, number>> = {
  relay: 1_000,
  "relay-quiet": 1_000,
  "relay-traced": 1_000,
  "relay-compared": 1_000,
  "relay-postgres": 1_000,
  "relay-million": 1_000_000,
};
/** What differs from the defaults. */
const SETTINGS: Partial<Record<SubjectName, Readonly<Record<string, string>>>> = {
  "relay-quiet": { RELAY_METRICS: "off", RELAY_CALL_RECORDS: "off" },
  "relay-traced": {
    RELAY_TRACES: "on",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.01",
  },
};
/** Loaded before it. */
const PRELOADED: Partial<Record<SubjectName, string>> = { "relay-traced": "tracing" };
const SCRIPTS: Partial<Record<SubjectName, string>> = {
  bare: "bare",
  fastify: "fastify-proxy",
  "http-proxy": "http-proxy",
  "grpc-js": "grpc-relay",
};
const START_TIMEOUT_MS = 60_000;

/**
 * Starts a subject in front of the provider on this port. `direct` is the provider itself, and not started here.
 *
 * @param checkout where the relay's script is.
 */
export function startSubject(name: SubjectName, providerPort: number, checkout = REPOSITORY): Promise<Subject> {
  return name in CONNECTIONS ? startRelay(name, providerPort, checkout) : startComparison(name, providerPort);
}

async function startComparison(name: SubjectName, providerPort: number): Promise<Subject> {
  const child = startPinned({
    core: "measured",
    args: [...preload("loop-hold"), scriptOf(SCRIPTS[name] ?? name)],
    env: { PROVIDER: `http://127.0.0.1:${providerPort}` },
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
    close: () => stopPinned(child),
  };
}

/** The relay as it is run: built, on a SQLite file, with its settings' defaults, its log in a file. */
async function startRelay(name: SubjectName, providerPort: number, checkout: string): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "relay-bench-"));
  const connections = CONNECTIONS[name] ?? 0;
  const { publicKey, privateKey } = createStore(checkout, folder, connections);
  const own = { ...environmentOf(folder, providerPort), ...SETTINGS[name] };
  const { env, closeDatabase } =
    name === "relay-postgres" ? await inPostgres(own) : { env: own, closeDatabase: async () => {} };
  const log = join(folder, "log");
  const output = openSync(log, "a");
  const extra = process.env["BENCH_NODE_ARGS"]?.split(" ") ?? [];
  const child = startPinned({
    core: "measured",
    cwd: checkout,
    args: [...preload("loop-hold"), ...preload(PRELOADED[name]), ...extra, RELAY_SCRIPT, "serve"],
    env,
    output,
  });
  closeSync(output);
  const close = async () => {
    await stopPinned(child);
    await closeDatabase();
    rmSync(folder, { recursive: true, force: true });
  };
  const port = await listeningPort(child, log);
  return { name, port, pid: child.pid as number, child, publicKey, privateKey, users: connections, close };
}

/** By the checkout's own code, whose schema it has. */
function createStore(checkout: string, folder: string, connections: number): BenchKeys {
  const source = `const { createBenchStore } = await import("./test/bench/bench-store.ts");
    console.log(JSON.stringify(await createBenchStore(process.argv[1], Number(process.argv[2]))));`;
  const args = ["--import", "tsx", "--input-type=module", "--eval", source, folder, String(connections)];
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

function environmentOf(folder: string, providerPort: number): Record<string, string> {
  const definitions = join(folder, "providers");
  mkdirSync(definitions);
  const definition = { name: PROVIDER_NAME, apiOrigins: [`http://127.0.0.1:${providerPort}`] };
  writeFileSync(join(definitions, `${PROVIDER_NAME}.json`), JSON.stringify(definition));
  return {
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "off",
    RELAY_DATABASE: `sqlite:${join(folder, "relay.db")}`,
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_PROVIDERS: definitions,
    RELAY_ALLOW_LOOPBACK: "true",
  };
}

async function listeningPort(child: ChildProcess, log: string): Promise<number> {
  for (const until = performance.now() + START_TIMEOUT_MS; performance.now() < until; await delay(50)) {
    const url = /"url":"([^"]+)","msg":"listening"/.exec(readFileSync(log, "utf8"))?.[1];
    if (url !== undefined) return Number(new URL(url).port);
    if (child.exitCode !== null) break;
  }
  throw new Error(`the relay did not start: ${readFileSync(log, "utf8")}`);
}
