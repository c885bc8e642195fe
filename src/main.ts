import cluster from "node:cluster";
import type { Logger } from "pino";
import { type Service, startService } from "./app/server.js";
import { type Config, configWarnings, exposureProblems, parseConfig } from "./config/config.js";
import { keepObjectsYoung, operatorExitCode, shrinkAtRest, stopSignal } from "./lib/process.js";
import { createLog, describeError, type Log, textFromError } from "./telemetry/log.js";
import { killWorkers, supervise } from "./workers/supervisor.js";
import { countForWorkers, leave, type ServiceUrls, shareOf, stopOrder, tellStarted } from "./workers/worker.js";

/** Time for calls and refreshes in flight to finish after SIGTERM. */
const GRACE_MS = 10_000;

const NO_WORKERS = "SIGHUP is ignored because there are no workers to restart; restart the service instead";

/**
 * The process: environment → configuration → service → signals → exit code.
 *
 * Resolves to 0 after a clean stop, 1 when the service cannot start, 2 when the configuration is wrong. A second signal
 * during the stop ends the process at once.
 *
 * @param onListening called once, when the service accepts calls.
 */
export async function runService(
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[],
  onListening: (urls: ServiceUrls, config: Config) => void = () => {},
): Promise<number> {
  const parsed = parseConfig(env, execArgv);
  const problems = "problems" in parsed ? parsed.problems : exposureProblems(parsed.config);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  if ("problems" in parsed || problems.length > 0) return 2;
  keepObjectsYoung();
  shrinkAtRest();
  const { config } = parsed;
  const log = createLog(config.logLevel, config.workers > 1);
  const { logger } = log;
  endOnFault(logger);
  if (cluster.isWorker) {
    return serve(shareOf(config), log, { started: tellStarted, stopped: stopOrder() }).finally(leave);
  }
  for (const { setting, text } of configWarnings(config, env)) logger.warn({ setting }, text);
  const stop = stopSignal(killWorkers);
  if (config.workers > 1) {
    countForWorkers();
    const started = (urls: ServiceUrls) => onListening(urls, config);
    return supervise({ count: config.workers, logger, stop, graceMs: GRACE_MS, started });
  }
  // By default SIGHUP would end the service in the middle of its calls; the sender wants a restart without
  // interruption.
  process.on("SIGHUP", () => logger.warn(NO_WORKERS));
  const started = ({ url, adminUrl }: ServiceUrls) => {
    logger.info({ adminUrl, url }, "listening");
    onListening({ url, adminUrl }, config);
  };
  return serve(config, log, { started, stopped: stop.then(() => 0) });
}

/** How a serving process interacts with what started it. */
interface Surroundings {
  readonly started: (urls: ServiceUrls) => void;
  /** Resolves when the process shall stop, to how long idle connections are kept, in milliseconds. */
  readonly stopped: Promise<number>;
}

async function serve(config: Config, log: Log, { started, stopped }: Surroundings): Promise<number> {
  let service: Service;
  try {
    service = await startService(config, log);
  } catch (error) {
    process.stderr.write(`The relay cannot start: ${startProblem(error, config)}\n`);
    return operatorExitCode(error) ?? 1;
  }
  started(service);
  const quietMs = await stopped;
  log.logger.info("stopping");
  await service.close(GRACE_MS, quietMs);
  log.logger.info("stopped");
  return 0;
}

/** The message of an error for the operator; for any other error only class, code and place. */
function startProblem(error: unknown, config: Config): string {
  const { code, syscall, port, message } = (error ?? {}) as NodeJS.ErrnoException & { readonly port?: number };
  // In a worker it is the supervisor that binds the port.
  if (syscall === "listen" || syscall === "bind") return listenProblem(message, code, port, config);
  if (code?.startsWith("ERR_OSSL_")) return `RELAY_TLS_CERT, RELAY_TLS_KEY: ${code}. 'relay config check' says more.`;
  return operatorExitCode(error) === undefined ? textFromError(error) : message;
}

/** Message for a port that cannot be opened. The port number tells which of the two settings it is. */
function listenProblem(message: string, code: string | undefined, port: number | undefined, config: Config): string {
  const { adminListen } = config;
  const isAdmin = adminListen !== "off" && adminListen.port === port && config.listen.port !== port;
  const setting = isAdmin ? "RELAY_ADMIN_LISTEN" : "RELAY_LISTEN";
  if (code !== "EADDRINUSE") return `${message}. ${setting} names the address.`;
  return `${message}. Another relay or 'relay demo' may be running there: stop it, or set ${setting} to another address.`;
}

/**
 * Ends the process on an uncaught error and logs only its class, code and place: Node.js would print the whole error
 * (threats L09).
 */
function endOnFault(logger: Logger): void {
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      logger.fatal({ where: event, ...describeError(error) }, "fault");
      process.exit(1);
    });
  }
}
