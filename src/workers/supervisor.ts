import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { isStarted, type ServiceUrls, type StopMessage } from "./messages.js";
import { watchPulse } from "./pulse.js";
import { createWorkerMetrics } from "./supervisor-metrics.js";

/** What supervising needs. */
export interface SupervisorOptions {
  readonly count: number;
  readonly logger: Logger;
  /** Resolves when everything is to end. */
  readonly stop: Promise<void>;
  /** How long a worker may take to finish its calls, in milliseconds; it is killed some time after that. */
  readonly graceMs: number;
}

/** Store, keys and definitions are read, and the port is bound, in a second or two. Milliseconds. */
const START_MS = 30_000;
/** Beside its calls a worker finishes renewals and deliveries, each with a deadline of its own. Milliseconds. */
const MARGIN_MS = 20_000;
/**
 * How long a worker that is replaced keeps connections that rest: whoever uses one in that time is told to open a new
 * one, and what rests longer is closed as any idle connection may be (RFC 9112 section 9.5). Milliseconds.
 */
const QUIET_MS = 2000;
/** Pause before a worker that ended by itself is replaced: a second, doubled up to this while they go on ending. */
const MAX_PAUSE_MS = 30_000;
/** A worker that lived this long did not end of how it was started, in milliseconds. */
const STEADY_MS = 60_000;

/**
 * Runs `count` workers on one port: replaces each that ends, and on SIGHUP all of them, one after the other, so that
 * every call finds one. Resolves to the exit code: 0 after a clean stop, or that of a worker that could not start.
 */
export async function supervise(options: SupervisorOptions): Promise<number> {
  const { count, logger } = options;
  const supervisor = new Supervisor(options);
  // From the start to the end: unheard it would end this process, and the workers with it.
  process.on("SIGHUP", () => void supervisor.restart());
  const first = await supervisor.start();
  if (typeof first === "number") return first;
  for (let more = 1; more < count; more++) await supervisor.start();
  logger.info({ adminUrl: first.adminUrl, url: first.url, workers: count }, "listening");
  await options.stop;
  return supervisor.stop();
}

/** The workers of one service; ended by `stop()`. */
class Supervisor {
  readonly #options: SupervisorOptions;
  /** Those that serve, with when they were started. */
  readonly #serving = new Map<Worker, number>();
  readonly #metrics = createWorkerMetrics();
  readonly #stopping = new AbortController();
  #pauseMs = 1000;
  #restart: Promise<void> | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Starts a worker. Resolves to where it listens, or to its exit code when it could not start. */
  async start(): Promise<(ServiceUrls & { readonly worker: Worker }) | number> {
    const worker = cluster.fork();
    // What could not be sent to one that is ending; its exit says the rest.
    worker.on("error", () => {});
    const urls = await startedUrls(worker);
    if (urls === undefined) return exitCodeOf(worker);
    this.#serving.set(worker, performance.now());
    this.#metrics.add(worker);
    worker.once("exit", () => void this.#onExit(worker));
    watchPulse(worker, () => {
      this.#options.logger.error("a worker does not answer and is ended");
      worker.process.kill("SIGKILL");
    });
    return { worker, url: urls.url, adminUrl: urls.adminUrl };
  }

  /** Replaces every worker with a new one; a second call waits for the first to be done. */
  restart(): Promise<void> {
    if (this.#stopping.signal.aborted) return Promise.resolve();
    this.#restart ??= this.#replaceAll().finally(() => {
      this.#restart = undefined;
    });
    return this.#restart;
  }

  /** Ends all workers; resolves to 0 when each of them has ended well. */
  async stop(): Promise<number> {
    this.#stopping.abort();
    await this.#restart;
    const codes = await Promise.all([...this.#serving.keys()].map((worker) => this.#end(worker, 0)));
    return codes.every((code) => code === 0) ? 0 : 1;
  }

  async #replaceAll(): Promise<void> {
    const { logger } = this.#options;
    logger.info({ workers: this.#serving.size }, "restarting");
    for (const old of [...this.#serving.keys()]) {
      if (this.#stopping.signal.aborted) return;
      const next = await this.start();
      if (typeof next === "number") {
        logger.error({ exitCode: next }, "the new worker could not start; the others go on");
        return;
      }
      await this.#end(old, QUIET_MS);
    }
    logger.info({ workers: this.#serving.size }, "restarted");
  }

  /** Resolves to the exit code. */
  async #end(worker: Worker, quietMs: number): Promise<number> {
    this.#serving.delete(worker);
    if (worker.isDead()) return exitCodeOf(worker);
    const message: StopMessage = { type: "stop", quietMs };
    if (worker.isConnected()) worker.send(message);
    const killer = setTimeout(() => worker.process.kill("SIGKILL"), quietMs + this.#options.graceMs + MARGIN_MS);
    await once(worker, "exit");
    clearTimeout(killer);
    return exitCodeOf(worker);
  }

  /** A worker that nobody asked to end. */
  async #onExit(worker: Worker): Promise<void> {
    const startedAt = this.#serving.get(worker);
    if (startedAt === undefined) return;
    this.#serving.delete(worker);
    this.#options.logger.error({ exitCode: exitCodeOf(worker) }, "a worker ended by itself and is replaced");
    if (performance.now() - startedAt > STEADY_MS) this.#pauseMs = 1000;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      // Where no worker is left, nothing but this pause keeps the process from ending.
      await delay(this.#pauseMs, undefined, { signal }).catch(() => {});
      this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
      if (signal.aborted || typeof (await this.start()) !== "number") return;
    }
  }
}

/** Where the worker listens; undefined when it ended before, or took too long and was ended. */
async function startedUrls(worker: Worker): Promise<ServiceUrls | undefined> {
  const killer = setTimeout(() => worker.process.kill("SIGKILL"), START_MS);
  try {
    return await new Promise((resolve) => {
      worker.on("message", (message: unknown) => {
        if (isStarted(message)) resolve(message);
      });
      worker.once("exit", () => resolve(undefined));
    });
  } finally {
    clearTimeout(killer);
  }
}

/** 1 for one that a signal ended. */
function exitCodeOf(worker: Worker): number {
  return worker.process.exitCode ?? 1;
}
