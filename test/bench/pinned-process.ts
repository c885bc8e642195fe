import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { REPOSITORY } from "./build.js";

/** Where a process runs: what is measured on one core, everything else on another. */
type Core = "measured" | "other";

/** How to start a process. */
export interface PinnedOptions {
  readonly core: Core;
  readonly args: readonly string[];
  /** Its working directory; the repository unless it is given. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Descriptor for its output; otherwise that of this process. */
  readonly output?: number;
}

const STOP_TIMEOUT_MS = 15_000;
const canPin = availableParallelism() > 1 && hasTaskset();

/** Whether processes are held to their cores on this machine. */
export function isPinned(): boolean {
  return canPin;
}

/** Starts a Node.js process that tells what it has to tell over its IPC channel. */
export function startPinned({ core, args, cwd = REPOSITORY, env, output }: PinnedOptions): ChildProcess {
  const command = [process.execPath, ...args];
  const [program = "", ...rest] = canPin ? ["taskset", "-c", core === "measured" ? "1" : "0", ...command] : command;
  return spawn(program, rest, {
    cwd,
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", output ?? 2, output ?? 2, "ipc"],
  });
}

/** The next message of a process; rejects when it ends instead. */
export async function nextMessage<T>(child: ChildProcess): Promise<T> {
  const given = new AbortController();
  const { signal } = given;
  try {
    return await Promise.race([
      once(child, "message", { signal }).then(([message]) => message as T),
      once(child, "exit", { signal }).then(([code]) => {
        throw new Error(`${child.spawnargs.at(-1)} ended with ${code}`);
      }),
    ]);
  } finally {
    given.abort();
  }
}

/** Stops a process of ours; one that does not end is killed. */
export async function stopPinned(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
}

function hasTaskset(): boolean {
  try {
    execFileSync("taskset", ["-c", "1", "true"], { stdio: "ignore" });
    return true;
  } catch {
    // Not Linux, or not two cores to choose from: it is measured without, and the summary says so.
    return false;
  }
}
