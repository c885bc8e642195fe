import { startHarness } from "../support/harness.js";
import { createCanaries } from "./canary.js";
import { createLogWatch } from "./log-watch.js";
import { measureUsage } from "./memory.js";

/**
 * A relay in a process of its own, so that its end is seen. Started by relay-process.ts; says where it is, answers
 * `usage`, and ends at `stop`. An error that nobody handles ends it, as it would end the service.
 */
async function main(): Promise<void> {
  const { tokens, findPart } = createCanaries(1);
  const log = createLogWatch(findPart);
  // What this machine breaks on purpose holds its places for a while.
  const env = { RELAY_MAX_CLIENT_CONNECTIONS: "4000" };
  const harness = await startHarness({ onLogLine: log.add, env });
  const application = await harness.createApplication();
  await harness.connect(application, "user", { accessToken: tokens[0] as string });
  process.on("message", async (message) => {
    if (message === "usage") {
      process.send?.({ kind: "usage", usage: await measureUsage(), log: log.read() });
      return;
    }
    await harness.close();
    process.send?.({ kind: "stopped", usage: await measureUsage() }, () => process.disconnect());
  });
  const { publicKey } = application;
  process.send?.({ kind: "ready", url: harness.url, origin: harness.sandbox.origin, publicKey, token: tokens[0] });
}

void main();
