import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { loadKeyring } from "../../src/sealing/keyring.js";
import { createSealer } from "../../src/sealing/seal.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import { connect, createApplication } from "../support/harness.js";

const RELAY = fileURLToPath(new URL("relay-process.ts", import.meta.url));
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 15_000;

/** A relay in a process of its own, so that it shares no event loop with what is done to it. */
export interface ChildRelay {
  readonly url: string;
  readonly port: number;
  /** The application's key. */
  readonly publicKey: string;
  /** Another application's key; its user `u` is connected to the same providers. */
  readonly otherKey: string;
  /** Resident memory in MiB, and open sockets; undefined where there is no /proc. */
  rssMib(): number | undefined;
  sockets(): number | undefined;
  /** Processor time used so far, in seconds; undefined where there is no /proc. */
  cpuSeconds(): number | undefined;
  isRunning(): boolean;
  /** Everything logged so far. */
  log(): string;
  /** Stops it; resolves with its exit code, null when it had to be killed. */
  close(): Promise<number | null>;
}

/** What a scenario may choose about its relay. */
export interface ChildRelayOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Provider name → origin; user `u` is connected to each. */
  readonly providers: Readonly<Record<string, string>>;
  /** The most file descriptors it may have open. */
  readonly maxDescriptors?: number;
  /** Nobody reads its log from when it listens: a pipe that fills up. */
  readonly hasStalledLog?: boolean;
  /** The access token of the user of the first application; by default each user has one of its own. */
  readonly accessToken?: string;
}

/** Starts a relay from the source, on a free port of 127.0.0.1. */
export async function startChildRelay(options: ChildRelayOptions): Promise<ChildRelay> {
  const folder = mkdtempSync(join(tmpdir(), "relay-stress-"));
  const logFile = join(folder, "log");
  const child = spawnRelay(folder, logFile, options);
  // Of a pipe only what came before it was left.
  let piped = "";
  child.stdout?.on("data", (chunk) => {
    piped += chunk;
  });
  const log = () => (child.stdout === null ? readFileSync(logFile, "utf8") : piped);
  try {
    const url = await listeningUrl(child, log);
    child.stdout?.pause();
    const [publicKey, otherKey] = await connectUsers(folder, options);
    return {
      url,
      port: Number(new URL(url).port),
      publicKey,
      otherKey,
      rssMib: () => rssMibOf(child),
      sockets: () => socketsOf(child),
      cpuSeconds: () => cpuSecondsOf(child),
      isRunning: () => child.exitCode === null && child.signalCode === null,
      log,
      close: () => stop(child, folder),
    };
  } catch (error) {
    await stop(child, folder);
    throw error;
  }
}

function spawnRelay(folder: string, logFile: string, options: ChildRelayOptions): ChildProcess {
  const env = {
    PATH: process.env["PATH"] ?? "",
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "off",
    RELAY_DATABASE: `sqlite:${join(folder, "relay.db")}`,
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_PROVIDERS: providerFiles(folder, options.providers).join(":"),
    RELAY_ALLOW_LOOPBACK: "true",
    // Kept sockets are gone when the number of sockets is looked at.
    RELAY_UPSTREAM_KEEP_ALIVE_MS: "2000",
    ...options.env,
  };
  const command = [process.execPath, "--import", "tsx", RELAY];
  const limited = ["sh", "-c", `ulimit -n ${options.maxDescriptors}; exec "$@"`, "sh", ...command];
  const [program = "", ...args] = options.maxDescriptors === undefined ? command : limited;
  const output = openSync(logFile, "a");
  const stdout = options.hasStalledLog === true ? "pipe" : output;
  const child = spawn(program, args, { env, stdio: ["ignore", stdout, output] });
  closeSync(output);
  return child;
}

function providerFiles(folder: string, providers: ChildRelayOptions["providers"]): string[] {
  return Object.entries(providers).map(([name, origin]) => {
    const file = join(folder, `${name}.json`);
    writeFileSync(file, JSON.stringify({ name, apiOrigins: [origin] }));
    return file;
  });
}

async function listeningUrl(child: ChildProcess, log: () => string): Promise<string> {
  for (const until = performance.now() + START_TIMEOUT_MS; performance.now() < until; await delay(50)) {
    const url = /"url":"([^"]+)","msg":"listening"/.exec(log())?.[1];
    if (url !== undefined) return url;
    if (child.exitCode !== null) break;
  }
  throw new Error(`the relay did not start: ${log()}`);
}

async function connectUsers(
  folder: string,
  { providers, accessToken }: ChildRelayOptions,
): Promise<readonly [publicKey: string, otherKey: string]> {
  const store = openSqliteStore(join(folder, "relay.db"));
  try {
    const sealer = createSealer(await loadKeyring(join(folder, "relay.key"), { mustExist: true }));
    const anyToken = { acceptToken: () => {} };
    const connected = async (token: { readonly accessToken?: string }) => {
      const application = await createApplication(store, sealer, {});
      for (const providerName of Object.keys(providers)) {
        await connect(store, sealer, anyToken, { application, userId: "u", providerName, ...token });
      }
      return application.publicKey;
    };
    return [await connected(accessToken === undefined ? {} : { accessToken }), await connected({})];
  } finally {
    store.close();
  }
}

function rssMibOf({ pid }: ChildProcess): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kib === undefined ? undefined : Math.round(Number(kib) / 1024);
  } catch {
    // Not Linux, or the process is gone; the report says so.
    return undefined;
  }
}

/** User and system time, in the ticks of proc(5), of which there are 100 a second on every Linux that Node.js runs on. */
function cpuSecondsOf({ pid }: ChildProcess): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    // As above.
    return undefined;
  }
}

function socketsOf({ pid }: ChildProcess): number | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).filter((fd) => isSocket(`/proc/${pid}/fd/${fd}`)).length;
  } catch {
    // As above.
    return undefined;
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    // Closed since the folder was read.
    return false;
  }
}

async function stop(child: ChildProcess, folder: string): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await exited;
    clearTimeout(timer);
  }
  rmSync(folder, { recursive: true, force: true });
  return child.exitCode;
}
