import { parseConfig, unknownSettings } from "./config.js";
import { startService } from "./server.js";
import { stopSignal } from "./stop-signal.js";
import { createLogger, describeError } from "./telemetry/log.js";

/** Calls and refreshes in flight may take this long to finish after SIGTERM, in milliseconds. */
const GRACE_MS = 10_000;

/**
 * The process: environment → configuration → service → signals → exit code.
 *
 * Resolves to 0 after a clean stop, 1 when the service cannot start, 2 when the configuration is wrong. A second
 * signal during the stop ends the process at once.
 */
export async function runService(
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[],
): Promise<number> {
  const parsed = parseConfig(env, execArgv);
  if ("problems" in parsed) {
    for (const problem of parsed.problems) process.stderr.write(`${problem}\n`);
    return 2;
  }
  const logger = createLogger(parsed.config.logLevel);
  for (const name of unknownSettings(env)) logger.warn({ setting: name }, "unknown setting is ignored");
  try {
    const service = await startService(parsed.config, { logger });
    logger.info({ url: service.url }, "listening");
    await stopSignal();
    await service.close(GRACE_MS);
    return 0;
  } catch (error) {
    process.stderr.write(`The relay cannot start: ${error instanceof Error ? error.message : "unknown error"}\n`);
    logger.debug(describeError(error), "start failed");
    return 1;
  }
}
