import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { type Service, startService } from "../../src/app/server.js";
import { type Config, parseConfig } from "../../src/config/config.js";
import type { Harness } from "../support/harness.js";

const SILENT = { logger: pino({ level: "silent" }) };

/**
 * A further relay on the store, the key and the providers of a harness, with settings of its own. The end of the test
 * closes it.
 */
export async function startSecondRelay(harness: Harness, env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const service = await startIn(harness.folder, env);
  onTestFinished(() => service.close(0));
  return service;
}

/** A relay whose files are all in one folder. */
export function startIn(folder: string, env: Readonly<Record<string, string>> = {}): Promise<Service> {
  return startService(configFor(folder, env), SILENT);
}

function configFor(folder: string, env: Readonly<Record<string, string>>): Config {
  const definitions = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const parsed = parseConfig({
    RELAY_LISTEN: "127.0.0.1:0",
    RELAY_ADMIN_LISTEN: "off",
    RELAY_DATABASE: `sqlite:${join(folder, "relay.db")}`,
    RELAY_ADMIN_TOKEN_FILE: join(folder, "admin.tokens"),
    RELAY_KEY_FILE: join(folder, "relay.key"),
    RELAY_PROVIDERS: definitions.map((name) => join(folder, name)).join(":"),
    RELAY_ALLOW_LOOPBACK: "true",
    ...env,
  });
  if ("problems" in parsed) throw new Error(parsed.problems.join("\n"));
  return parsed.config;
}
