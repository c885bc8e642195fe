import type { Logger } from "pino";
import { parseConfig, unknownSettings } from "./config.js";
import { operatorExitCode } from "./exit-codes.js";
import { type Service, startService } from "./server.js";
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
  endOnFault(logger);
  for (const name of unknownSettings(env)) logger.warn({ setting: name }, "unknown setting is ignored");
  let service: Service;
  try {
    service = await startService(parsed.config, { logger });
  } catch (error) {
    process.stderr.write(`The relay cannot start: ${startProblem(error)}\n`);
    return operatorExitCode(error) ?? 1;
  }
  logger.info({ url: service.url }, "listening");
  await stopSignal();
  await service.close(GRACE_MS);
  return 0;
}

/** Errors of ours, and those of the system about files and ports, say what is wrong; others only what they are. */
function startProblem(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  const isForOperator = operatorExitCode(error) !== undefined || "syscall" in error;
  return isForOperator ? error.message : Object.values(describeError(error)).filter(Boolean).join(" ");
}

/** What nobody caught ends the process, told by class and place only: Node.js would print the whole error (threats L09). */
function endOnFault(logger: Logger): void {
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      logger.fatal({ where: event, ...describeError(error) }, "fault");
      process.exit(1);
    });
  }
}
