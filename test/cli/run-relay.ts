import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { afterAll, onTestFinished, type TestOptions } from "vitest";
import { startService } from "../../src/app/server.js";
import { runCommand } from "../../src/cli/program.js";
import { parseConfig } from "../../src/config/config.js";

/** The built command. */
export const RELAY = fileURLToPath(new URL("../../dist/src/cli/relay.js", import.meta.url));

/** Runs a command on a terminal. */
export const SCRIPT = "/usr/bin/script";

/** Options of a `describe()` whose tests need that. */
export const HAS_TERMINAL: TestOptions = existsSync(SCRIPT)
  ? {}
  : { skip: true, meta: { skippedBecause: `there is no ${SCRIPT}, which runs a command on a terminal` } };

/** How one command line ended. */
export interface Finished {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Settings on top of the folder's own. */
export type Env = Readonly<Record<string, string>>;

/** What a command gets beside its arguments. */
interface RunOptions {
  /** Standard input. */
  readonly input?: string | Uint8Array;
  readonly env?: Env;
  /** A person sees standard error; not in a process of its own. */
  readonly isTerminal?: boolean;
}

/** A relay of one's own: key file, database and whatever a test puts into the folder. */
export interface CliFolder {
  readonly path: string;
  readonly env: Env;
  /**
   * Runs one command line to its end, in the process of the test unless it needs one of its own: loading Node.js and
   * the commands takes ten times as long as most of them run.
   */
  run(args: readonly string[], options?: RunOptions): Promise<Finished>;
  /** The same in a process of its own, on the built files: shows also that the command ends by itself. */
  runProcess(args: readonly string[], options?: RunOptions): Promise<Finished>;
  /** The same with --json; the JSON of standard output. Throws when the command fails. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at JSON of any shape.
  json(args: readonly string[], options?: RunOptions): Promise<any>;
  /** Starts a command that goes on running; it is killed when the test ends. */
  start(args: readonly string[], env?: Env): ChildProcessWithoutNullStreams;
}

/** Undoes a thing that a test has made. */
export type CleanUp = () => void | Promise<void>;

/** Takes what is to be undone when a test has finished, the last first. */
export type OnEnd = (cleanUp: CleanUp) => void;

/**
 * Makes an empty folder, removed when the test has finished. Tests that run beside others pass the `onTestFinished` of
 * their own context, since the one of the module does not know which of them asks.
 */
export function createFolder(onEnd: OnEnd = onTestFinished): CliFolder {
  const path = mkdtempSync(join(tmpdir(), "relay-cli-test-"));
  onEnd(() => rmSync(path, { recursive: true, force: true }));
  const env = {
    RELAY_ADMIN_LISTEN: "off",
    RELAY_ADMIN_TOKEN_FILE: join(path, "admin.tokens"),
    RELAY_DATABASE: `sqlite:${join(path, "relay.db")}`,
    RELAY_KEY_FILE: join(path, "relay.key"),
  };
  // Nothing of the machine's own RELAY_ settings comes through.
  const envWith = (more: Env = {}) => ({ PATH: process.env["PATH"] ?? "", ...env, ...more });
  const spawnRelay = (args: readonly string[], more?: Env) =>
    spawn(process.execPath, [RELAY, ...args], { cwd: path, env: envWith(more) });
  const runProcess: CliFolder["runProcess"] = async (args, options = {}) => {
    const child = spawnRelay(args, options.env);
    // A command that does not read its input may end before all is written.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    return finished(child);
  };
  const run: CliFolder["run"] = (args, options = {}) =>
    needsProcess(args, options.env)
      ? runProcess(args, options)
      : inTurn(() => runHere(path, args, { ...options, env: envWith(options.env) }));
  return {
    path,
    env,
    run,
    runProcess,
    async json(args, options) {
      const result = await run([...args, "--json"], options);
      if (result.exitCode !== 0) throw new Error(`${args.join(" ")}: ${result.exitCode} ${result.stderr}`);
      return JSON.parse(result.stdout);
    },
    start(args, more) {
      const child = spawnRelay(args, more);
      // With the last of its workers, too: each may put a file into the folder that is to be removed.
      const ended = once(child, "close");
      onEnd(async () => {
        child.kill("SIGKILL");
        await ended;
      });
      return child;
    },
  };
}

/** `serve` and `demo` take signals and write to the descriptor; Node.js itself reads the rest when it starts. */
function needsProcess([command = "", ...rest]: readonly string[], env: Env = {}): boolean {
  const isService = ["", "start", "serve", "demo"].includes(command) && !rest.includes("--help");
  return isService || "NODE_OPTIONS" in env || "NODE_EXTRA_CA_CERTS" in env;
}

/** Commands that run here come one after the other: environment and standard streams are the process's own. */
let running: Promise<unknown> = Promise.resolve();

function inTurn<Result>(run: () => Promise<Result>): Promise<Result> {
  const result = running.then(run);
  running = result.catch(() => {});
  return result;
}

async function runHere(
  cwd: string,
  args: readonly string[],
  { input = "", env, isTerminal = false }: RunOptions & { readonly env: Env },
): Promise<Finished> {
  const output = { stdout: "", stderr: "" };
  const own = { env: process.env, cwd: process.cwd() };
  const streams = {
    stdin: Readable.from(input.length === 0 ? [] : [Buffer.from(input)]),
    stdout: collector((text) => (output.stdout += text)),
    stderr: Object.assign(
      collector((text) => (output.stderr += text)),
      isTerminal && { isTTY: true },
    ),
  };
  const descriptors = Object.keys(streams).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  process.chdir(cwd);
  process.env = { ...env };
  for (const [name, value] of Object.entries(streams))
    Object.defineProperty(process, name, { value, configurable: true });
  try {
    const exitCode = await runCommand(args);
    return { exitCode, ...output };
  } finally {
    for (const [name, descriptor] of descriptors)
      Object.defineProperty(process, name, descriptor as PropertyDescriptor);
    process.env = own.env;
    process.chdir(own.cwd);
  }
}

/** Standard output as a process without a terminal has it. */
function collector(add: (text: string) => void): Writable {
  const decoder = new StringDecoder("utf8");
  return new Writable({
    decodeStrings: true,
    write(chunk: Buffer, _encoding, done) {
      add(decoder.write(chunk));
      done();
    },
  });
}

/**
 * Runs commands that many tests of a file begin with in one folder, once, when the first of them asks; each test has a
 * copy of that folder, and with it what `prepare` made of it. Call it where `describe()` is called.
 */
export function prepareOnce<Made extends object>(
  prepare: (folder: CliFolder) => Promise<Made>,
): (onEnd?: OnEnd) => Promise<Made & { readonly folder: CliFolder }> {
  const cleanUps: CleanUp[] = [];
  let preparing: Promise<{ readonly path: string; readonly made: Made }> | undefined;
  afterAll(async () => {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  });
  return async (onEnd) => {
    preparing ??= prepareIn(
      createFolder((cleanUp) => cleanUps.push(cleanUp)),
      prepare,
    );
    const { path, made } = await preparing;
    const folder = createFolder(onEnd);
    cpSync(path, folder.path, { recursive: true });
    return { ...made, folder };
  };
}

async function prepareIn<Made>(folder: CliFolder, prepare: (folder: CliFolder) => Promise<Made>) {
  return { path: folder.path, made: await prepare(folder) };
}

/** Collects everything that a process writes until it ends. */
export async function finished(child: ChildProcessWithoutNullStreams): Promise<Finished> {
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (output.stderr += text));
  const [exitCode] = await once(child, "close");
  return { exitCode, ...output };
}

/** Resolves with the first line of standard output that `find` makes something of; rejects when the output ends. */
export function lineFrom<Found>(
  child: ChildProcessWithoutNullStreams,
  find: (line: string) => Found | undefined,
): Promise<Found> {
  return new Promise((resolve, reject) => {
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    createInterface(child.stdout)
      .on("line", (line) => {
        const found = find(line);
        if (found !== undefined) resolve(found);
      })
      .on("close", () => reject(new Error(`the line did not come: ${stderr}`)));
  });
}

/** Starts `relay serve` on a free port and resolves with its address. */
export async function startServe(
  folder: CliFolder,
  env: Env = {},
): Promise<{ url: string; adminUrl: string; child: ReturnType<CliFolder["start"]> }> {
  const child = folder.start(["serve"], { RELAY_LISTEN: "127.0.0.1:0", ...env });
  const { url, adminUrl = "" } = await lineFrom(child, (line) => {
    const entry = JSON.parse(line);
    return entry.msg === "listening" ? (entry as { url: string; adminUrl?: string }) : undefined;
  });
  return { url, adminUrl, child };
}

/**
 * Starts the service in the process of the test, on a free port, for tests of what commands see of a running one. It
 * ends with the test, or before it by `close()`.
 */
export function startServiceHere(
  folder: CliFolder,
  env: Env = {},
  onEnd: OnEnd = onTestFinished,
): Promise<{ url: string; close(): Promise<void> }> {
  return inTurn(async () => {
    const parsed = parseConfig({ ...folder.env, RELAY_LISTEN: "127.0.0.1:0", ...env });
    if ("problems" in parsed) throw new Error(parsed.problems.join("\n"));
    const cwd = process.cwd();
    process.chdir(folder.path);
    const service = await startService(parsed.config, { logger: pino({ level: "silent" }) }).finally(() =>
      process.chdir(cwd),
    );
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= service.close(1000));
    onEnd(close);
    return { url: service.url, close };
  });
}
