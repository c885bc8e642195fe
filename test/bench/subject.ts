import { type ChildProcess, execFileSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgresServer } from "../support/postgres-server.js";
import { createBenchStore, PROVIDER_NAME } from "./bench-store.js";
import { RELAY_SCRIPT, scriptOf } from "./build.js";
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

/** Starts a subject in front of the provider on this port. `direct` is the provider itself, and not started here. */
export function startSubject(name: SubjectName, providerPort: number): Promise<Subject> {
  const connections = CONNECTIONS[name];
  return connections === undefined ? startComparison(name, providerPort) : startRelay(name, providerPort, connections);
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
async function startRelay(name: SubjectName, providerPort: number, connections: number): Promise<Subject> {
  const folder = mkdtempSync(join(tmpdir(), "relay-bench-"));
  const { publicKey, privateKey } = await createBenchStore(folder, connections);
  const own = { ...environmentOf(folder, providerPort), ...SETTINGS[name] };
  const { env, closeDatabase } =
    name === "relay-postgres" ? await inPostgres(own) : { env: own, closeDatabase: async () => {} };
  const log = join(folder, "log");
  const output = openSync(log, "a");
  const extra = process.env["BENCH_NODE_ARGS"]?.split(" ") ?? [];
  const child = startPinned({
    core: "measured",
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

function preload(script: string | undefined): string[] {
  return script === undefined ? [] : ["--import", `./${scriptOf(script)}`];
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
