import type { Command } from "commander";
import { stopSignal } from "../lib/process.js";
import { addCommand, ExitError, wholeNumber, withProgress, writeLine, writeNote } from "./command.js";
import { freePort } from "./start.js";

interface DemoOptions {
  readonly once?: boolean;
  readonly port?: number;
  readonly json?: boolean;
}

const DEFAULT_PORT = 8080;
/** Time that calls in flight have to finish when the demo stops. */
const GRACE_MS = 2000;

/** `relay demo`: the whole product on this machine, in a temporary folder. */
export function addDemo(program: Command): void {
  addCommand(program, {
    usage: "demo",
    about:
      "Start a sandbox provider and a relay on loopback, make one call over each of REST, Connect and gRPC, and keep running for yours.",
    examples: ["relay demo", "relay demo --once"],
    more: "Everything is kept in a temporary folder, which is removed at the end. With --json each call is one line.",
  })
    .option("--once", "exit after the calls, with code 0 only if all succeeded")
    .option(
      "--port <number>",
      `the relay's port; by default ${DEFAULT_PORT} or a free one, with --once a free one`,
      wholeNumber(0, 65_535),
    )
    .action(demo);
}

async function demo(options: DemoOptions): Promise<void> {
  const stop = stopSignal();
  const { startDemo, makeDemoCalls, demoLines } = await import("./demo-relay.js");
  const port = await portFor(options);
  const relay = await withProgress("Starting a provider and a relay…", () => startDemo(port)).catch((error) => {
    if (error.code !== "EADDRINUSE") throw error;
    throw new ExitError(1, `Port ${port} is taken; choose another one with --port.`);
  });
  try {
    const failed = await makeDemoCalls(relay, { json: options.json ?? false });
    if (failed > 0) throw new ExitError(1, `${failed} of the calls failed.`);
    if (options.once) return;
    if (!options.json) writeLine(demoLines(relay));
    await stop;
  } finally {
    await relay.close(GRACE_MS);
  }
}

/** The port given by option, which must be free; else the usual one, or a free one when that is taken. */
async function portFor({ port, once }: DemoOptions): Promise<number> {
  if (port !== undefined || once) return port ?? 0;
  const free = await freePort(DEFAULT_PORT);
  if (free !== DEFAULT_PORT) writeNote(`Port ${DEFAULT_PORT} is taken, so the relay listens on a free one.`);
  return free;
}
