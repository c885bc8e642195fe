import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

/** How a process ended. */
interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** `relay serve` in a process of its own. */
export interface RelayProcess {
  readonly pid: number;
  /** Resolves to where it listens; to undefined when it ended before it did. */
  readonly listening: Promise<string | undefined>;
  /** Where it listens, once it does and while it lives. */
  readonly url: string | undefined;
  readonly exited: Promise<Exit>;
  /** Lines that it logged as errors. */
  readonly faults: readonly string[];
  kill(signal: NodeJS.Signals): void;
  /** Stops it with SIGSTOP, and resolves when it stands. */
  stop(): Promise<void>;
}

/** Starts one. `onFault` hears of each line it logs as an error, and of what it writes to standard error. */
export function startRelayProcess(
  script: string,
  env: Readonly<Record<string, string>>,
  onFault: (line: string) => void,
): RelayProcess {
  const child = spawn(process.execPath, [script, "serve"], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const faults: string[] = [];
  const noteFault = (line: string) => {
    faults.push(line);
    onFault(line);
  };
  const state: { url: string | undefined } = { url: undefined };
  const exited = once(child, "exit").then(([code, signal]): Exit => {
    state.url = undefined;
    return { code, signal };
  });
  const listening = new Promise<string | undefined>((resolve) => {
    void exited.then(() => resolve(undefined));
    createInterface(child.stdout).on("line", (line) => {
      const { level = 0, msg, url } = recordFrom(line);
      if (level >= 50) noteFault(line);
      if (msg !== "listening" || url === undefined) return;
      state.url = url;
      resolve(url);
    });
  });
  createInterface(child.stderr).on("line", noteFault);
  return {
    pid: child.pid as number,
    listening,
    exited,
    faults,
    get url() {
      return state.url;
    },
    kill: (signal) => void child.kill(signal),
    stop: () => stop(child),
  };
}

/** What it was killed in the middle of writing is no record. */
function recordFrom(line: string): { level?: number; msg?: string; url?: string } {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}

async function stop(child: ChildProcess): Promise<void> {
  child.kill("SIGSTOP");
  // https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: the state follows the name in parentheses.
  while (!/\) T /.test(readFileSync(`/proc/${child.pid}/stat`, "utf8"))) await delay(1);
}
