import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, onTestFinished } from "vitest";

const RELAY = fileURLToPath(new URL("../../dist/src/cli/relay.js", import.meta.url));

/** How one command line ended. */
export interface Finished {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Settings on top of the folder's own. */
export type Env = Readonly<Record<string, string>>;

/** A relay of one's own: key file, database and whatever a test puts into the folder. */
export interface CliFolder {
  readonly path: string;
  readonly env: Env;
  /** Runs one command line to its end. */
  run(args: readonly string[], options?: { readonly input?: string; readonly env?: Env }): Promise<Finished>;
  /** The same with --json; the JSON of standard output. Throws when the command fails. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at JSON of any shape.
  json(args: readonly string[], options?: { readonly input?: string; readonly env?: Env }): Promise<any>;
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
  const spawnRelay = (args: readonly string[], more: Env = {}) =>
    // Nothing of the machine's own RELAY_ settings comes through.
    spawn(process.execPath, [RELAY, ...args], { cwd: path, env: { PATH: process.env["PATH"] ?? "", ...env, ...more } });
  const run: CliFolder["run"] = async (args, options = {}) => {
    const child = spawnRelay(args, options.env);
    // A command that does not read its input may end before all is written.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    return finished(child);
  };
  return {
    path,
    env,
    run,
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
