import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";

/** `relay demo` on free ports, as a process of its own. */
export interface Demo {
  readonly relayUrl: string;
  readonly sandboxOrigin: string;
  close(): Promise<void>;
}

/** Starts the demo from the build, and waits until it says that it is the user's turn. */
export async function startDemo(): Promise<Demo> {
  const args = [resolve("dist/src/cli/relay.js"), "demo", "--port", "0"];
  const demo = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let origins: RegExpExecArray | null = null;
  for await (const line of createInterface({ input: demo.stdout })) {
    origins ??= /^The sandbox provider is at (\S+), the relay at (\S+)\.$/.exec(line);
    if (line.includes("Your turn")) break;
  }
  const [, sandboxOrigin = "", relayUrl = ""] = origins ?? [];
  return {
    relayUrl,
    sandboxOrigin,
    async close() {
      const ended = new Promise((done) => demo.once("exit", done));
      demo.kill("SIGTERM");
      await ended;
    },
  };
}
