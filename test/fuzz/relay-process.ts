import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { LogWatch } from "./log-watch.js";
import type { Usage } from "./memory.js";

/** Where the relay of a child process is. */
export interface RelayPlace {
  readonly url: string;
  /** Of its sandbox provider. */
  readonly origin: string;
  readonly publicKey: string;
  /** The one that must not be seen; its user is `user`. */
  readonly token: string;
}

/** A relay in a child process. */
export interface RelayProcess extends RelayPlace {
  /** What it wrote to standard error, warnings and the reason of its end, and how it ended; empty while all is well. */
  readonly trouble: string;
  measure(): Promise<{ readonly usage: Usage; readonly log: ReturnType<LogWatch["read"]> }>;
  /** Ends it. Resolves with what it had open when it was closed; undefined when it has ended before. */
  stop(): Promise<Usage | undefined>;
}

/** Starts it and waits until it listens. */
export async function startRelayProcess(): Promise<RelayProcess> {
  const child = fork(fileURLToPath(new URL("./raw-relay.ts", import.meta.url)), {
    execArgv: ["--import", "tsx"],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let trouble = "";
  let isStopping = false;
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    trouble += text;
  });
  child.on("exit", (code, signal) => {
    if (!isStopping || code !== 0) trouble += `\nthe relay ended with ${signal ?? `exit code ${code}`}`;
  });
  const place = await nextMessage<RelayPlace>(child, "ready");
  return {
    ...place,
    get trouble() {
      return trouble;
    },
    async measure() {
      const message = nextMessage<Awaited<ReturnType<RelayProcess["measure"]>>>(child, "usage");
      child.send("usage");
      return message;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return undefined;
      isStopping = true;
      const exited = once(child, "exit");
      const stopped = nextMessage<{ readonly usage: Usage }>(child, "stopped");
      child.send("stop");
      const { usage } = await stopped;
      await exited;
      return usage;
    },
  };
}

/** Rejects when the process ends instead. */
function nextMessage<Message>(child: ChildProcess, kind: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error("the relay's process has ended"));
    if (child.exitCode !== null) return ended();
    const onMessage = (message: { readonly kind?: string }) => {
      if (message.kind !== kind) return;
      child.off("message", onMessage).off("exit", ended);
      resolve(message as Message);
    };
    child.on("message", onMessage).on("exit", ended);
  });
}
