import type { Command } from "commander";
import { stopSignal } from "../lib/process.js";
import { addCommand, ExitError, wholeNumber, withProgress, writeLine, writeNote } from "./command.js";
import type { DemoRelay } from "./demo-relay.js";

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
  const relay = await withProgress("Starting a provider and a relay…", () => startOnPort(startDemo, options));
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

/**
 * Falls back to a free port when the usual one is taken, for example by a relay. A port given by option must be free.
 */
async function startOnPort(start: (port: number) => Promise<DemoRelay>, options: DemoOptions): Promise<DemoRelay> {
  const port = options.port ?? (options.once ? 0 : DEFAULT_PORT);
  try {
    return await start(port);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    if (options.port !== undefined) throw new ExitError(1, `Port ${port} is taken; choose another one with --port.`);
    writeNote(`Port ${port} is taken, so the relay listens on a free one.`);
    return start(0);
  }
}
