import type { Worker } from "node:cluster";
import cluster from "node:cluster";
import { once, setMaxListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { createSingleFlight } from "../lib/turns.js";
import { describeError } from "../telemetry/log.js";
import type { Metric } from "../telemetry/metric.js";
import { sumOf } from "../telemetry/metrics.js";
import { isMessage, type Message, type ServiceUrls, watchPulse } from "./worker.js";

/** Adds up the metrics of all workers, for any worker that asks. */
interface WorkerMetrics {
  /** Includes a worker from now on; its counts are kept when it ends. */
  add(worker: Worker): void;
}

/** A worker answers in a few milliseconds unless its event loop is blocked; then its last report counts. */
const WAIT_MS = 1000;

/**
 * Starts with no counts. A sum never decreases: it is over each worker's last report, including those that have ended.
 */
export function createWorkerMetrics(): WorkerMetrics {
  const latest = new Map<Worker, readonly Metric[]>();
  /** Workers that have not answered yet. */
  const asked = new Map<Worker, () => void>();
  let ended: readonly Metric[] = [];
  let lastKept = Promise.resolve();

  const gathering = createSingleFlight(async () => {
    const answers = [...latest.keys()].map((worker) => ask(worker, asked));
    const waiting = new AbortController();
    await Promise.race([Promise.all(answers), delay(WAIT_MS, undefined, { signal: waiting.signal }).catch(() => {})]);
    waiting.abort();
    return sumOf([ended, ...latest.values()]);
  });

  function onMessage(worker: Worker, message: unknown): void {
    if (isMessage("metrics", message)) {
      latest.set(worker, message.metrics);
      stopWaiting(worker);
      if (message.isLast) keep(worker);
    } else if (isMessage("metricsWanted", message)) {
      void gathering.run().then((metrics) => send(worker, { type: "metricsSum", id: message.id, metrics }));
    }
  }

  function stopWaiting(worker: Worker): void {
    asked.get(worker)?.();
    asked.delete(worker);
  }

  /**
   * Keeps the counts of a worker that ended, without gauges. One worker after another, since all add to the same sum.
   */
  function keep(worker: Worker): void {
    stopWaiting(worker);
    lastKept = lastKept.then(async () => {
      const last = latest.get(worker);
      if (last === undefined) return;
      ended = (await sumOf([ended, last])).filter(({ type }) => type !== "gauge");
      latest.delete(worker);
    });
  }

  return {
    add(worker) {
      latest.set(worker, []);
      worker.on("message", (message: unknown) => onMessage(worker, message));
      // For a worker that sent no last report. Messages may arrive after 'exit', but not after 'close'.
      worker.process.once("close", () => keep(worker));
    },
  };
}

/** Asks a worker for its metrics; resolves when it has answered or can no longer answer. */
function ask(worker: Worker, asked: Map<Worker, () => void>): Promise<void> {
  return new Promise((resolve) => {
    asked.set(worker, resolve);
    if (send(worker, { type: "metricsAsked" })) return;
    asked.delete(worker);
    resolve();
  });
}

/** Sends a message; false when the worker is gone. */
function send(worker: Worker, message: Message): boolean {
  if (!worker.isConnected()) return false;
  worker.send(message);
  return true;
}

/** Options of {@link supervise}. */
interface SupervisorOptions {
  readonly count: number;
  readonly logger: Logger;
  /** Resolves when the service should stop. */
  readonly stop: Promise<void>;
  /** Called once, when all workers are serving. */
  readonly started?: (urls: ServiceUrls) => void;
  /** How long a worker may take to finish its calls, in milliseconds; it is killed {@link MARGIN_MS} later. */
  readonly graceMs: number;
}

/**
 * Time for a worker to start, in milliseconds; opening the store, reading keys and definitions and binding the port
 * takes a second or two.
 */
const START_MS = 30_000;
/** Extra time, in milliseconds, for a worker to redeem codes and to store tokens that the store refuses at first. */
const MARGIN_MS = 20_000;
/**
 * How long a worker that is being replaced keeps idle connections, in milliseconds. A client that uses one in that time
 * is told to open a new one; longer idle ones are closed, as any idle connection may be (RFC 9112 section 9.5).
 */
const QUIET_MS = 2000;
/**
 * Longest backoff before replacing a worker, in milliseconds, after workers crashed soon after their start: no pause
 * after the first, then one second after two, doubled each time up to this.
 */
const MAX_PAUSE_MS = 30_000;
/** A worker that lived this long did not end because of its start, in milliseconds. */
const STEADY_MS = 60_000;
const STOP_SIGNALS: ReadonlySet<string | null> = new Set(["SIGTERM", "SIGINT"]);
/** Signals from outside, such as an operator or the kernel's OOM killer: the next worker need not end as well. */
const FROM_OUTSIDE: ReadonlySet<string | null> = new Set([...STOP_SIGNALS, "SIGKILL"]);

/**
 * Runs `count` workers on one port. Replaces each that ends, and on SIGHUP all of them, one after another, so that
 * every call finds one. Resolves to the exit code: 0 after a clean stop, 1 if a worker did not end cleanly, or that of
 * the first worker if it could not start.
 */
export async function supervise(options: SupervisorOptions): Promise<number> {
  const { count, logger } = options;
  const supervisor = new Supervisor(options);
  // Handled from start to end: without a listener SIGHUP would end this process and the workers with it.
  process.on("SIGHUP", () => void supervisor.restart());
  const ended = options.stop.then(() => supervisor.stop());
  const first = await supervisor.start();
  if (typeof first === "number") return supervisor.isStopping ? ended : first;
  await supervisor.fill();
  if (!supervisor.isStopping) {
    logger.info({ adminUrl: first.adminUrl, url: first.url, workers: count }, "listening");
    options.started?.(first);
  }
  return ended;
}

/** Kills all workers at once, whatever they are doing. */
export function killWorkers(): void {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGKILL");
}

/** A worker that is serving. */
interface Life {
  readonly startedAt: number;
  /** Number of restart signals before it started; it has read the configuration of that time. */
  readonly generation: number;
}

type Started = ServiceUrls | number;

/** The workers of one service, until `stop()`. */
class Supervisor {
  readonly #options: SupervisorOptions;
  /** All workers that have not ended, and whether they have ever served. */
  readonly #living = new Map<Worker, { hasServed: boolean }>();
  readonly #serving = new Map<Worker, Life>();
  readonly #starting = new Set<Promise<Started>>();
  readonly #metrics = createWorkerMetrics();
  readonly #stopping = new AbortController();
  #generation = 0;
  /** Consecutive workers that ended by themselves soon after their start. */
  #shortLives = 0;
  readonly #restart = createSingleFlight(() => this.#replaceAll());

  constructor(options: SupervisorOptions) {
    this.#options = options;
    // Each worker to be replaced may be waiting for it.
    setMaxListeners(options.count, this.#stopping.signal);
  }

  /** Starts a worker. Resolves to its addresses, or to its exit code if it could not start. Never rejects. */
  start(): Promise<Started> {
    const started = this.#fork(this.#generation)
      .catch((error: unknown) => {
        this.#options.logger.error(describeError(error), "the system cannot start a process for a worker");
        this.#shortLives += 1;
        return 1;
      })
      .finally(() => this.#starting.delete(started));
    this.#starting.add(started);
    return started;
  }

  /** Starts workers until there are enough. May run several times concurrently. */
  async fill(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted && this.#isMissingOne) {
      // If no worker is left, only this timer keeps the process alive.
      const pauseMs = this.#shortLives < 2 ? 0 : Math.min(1000 * 2 ** (this.#shortLives - 2), MAX_PAUSE_MS);
      if (pauseMs > 0) await delay(pauseMs, undefined, { signal }).catch(() => {});
      if (signal.aborted || !this.#isMissingOne) return;
      await this.start();
    }
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  get #isMissingOne(): boolean {
    return this.#serving.size + this.#starting.size < this.#options.count;
  }

  async #fork(generation: number): Promise<Started> {
    const worker = cluster.fork();
    // A message could not be sent to a worker that is ending; its exit is handled separately.
    worker.on("error", () => {});
    // fork() throws for want of memory; where processes or descriptors are exhausted, it reports that later.
    if (worker.process.pid === undefined) throw (await once(worker, "error"))[0];
    const life = { hasServed: false };
    this.#living.set(worker, life);
    worker.once("exit", () => this.#living.delete(worker));
    const urls = await startedUrls(worker);
    if (urls === undefined) {
      this.#noteEnd(worker, 0);
      // Perhaps its whole group of processes was told to end, and the supervisor has not heard of it yet.
      const isToldAlone = STOP_SIGNALS.has(worker.process.signalCode) && !this.isStopping;
      return isToldAlone ? this.#fork(generation) : exitCodeOf(worker);
    }
    life.hasServed = true;
    this.#serving.set(worker, { startedAt: performance.now(), generation });
    this.#metrics.add(worker);
    worker.once("exit", () => this.#onExit(worker));
    watchPulse(worker, () => {
      this.#options.logger.error({ worker: worker.process.pid }, "a worker is unresponsive and is killed");
      worker.process.kill("SIGKILL");
    });
    return urls;
  }

  /** Replaces every worker that was started before this call. A call during a restart extends that restart. */
  restart(): Promise<void> {
    if (this.isStopping) return Promise.resolve();
    this.#generation += 1;
    this.#options.logger.info({ workers: this.#serving.size }, "restarting");
    return this.#restart.run();
  }

  /** Stops all workers, including those still starting; resolves to 0 if all of them ended cleanly, else to 1. */
  async stop(): Promise<number> {
    this.#options.logger.info({ workers: this.#living.size }, "stopping");
    this.#stopping.abort();
    const codes = await Promise.all([...this.#living.keys()].map((worker) => this.#end(worker, 0)));
    return codes.every((code) => code === 0) ? 0 : 1;
  }

  async #replaceAll(): Promise<void> {
    const { logger } = this.#options;
    while (!this.isStopping) {
      const generation = this.#generation;
      const old = [...this.#serving].find(([, life]) => life.generation < generation)?.[0];
      if (old !== undefined) {
        const next = await this.start();
        if (this.isStopping) return;
        if (typeof next !== "number") {
          await this.#end(old, QUIET_MS);
          continue;
        }
        logger.error({ exitCode: next }, "the new worker could not start; the others continue");
        // The old one may have ended meanwhile and not been replaced, since a new one was starting.
        void this.fill();
        if (generation === this.#generation) return;
      } else if (this.#starting.size > 0) {
        // One of them may have been started before the signal.
        await Promise.all(this.#starting);
      } else {
        logger.info({ workers: this.#serving.size }, "restarted");
        return;
      }
    }
  }

  /** Stops a worker; resolves to its exit code. */
  async #end(worker: Worker, quietMs: number): Promise<number> {
    const isServing = this.#serving.delete(worker);
    const life = this.#living.get(worker);
    if (worker.isDead()) return exitCodeOf(worker);
    // A starting worker may not listen to messages yet.
    if (!isServing || !send(worker, { type: "stop", quietMs })) worker.process.kill("SIGTERM");
    const killer = setTimeout(() => worker.process.kill("SIGKILL"), quietMs + this.#options.graceMs + MARGIN_MS);
    // Not once() of node:events, which rejects when a message cannot be sent to a worker that has just died.
    await new Promise((ended) => worker.once("exit", ended));
    clearTimeout(killer);
    // One that has not served has nothing to finish. Told a second time, with its whole group of processes, it ends at once.
    const isClean = STOP_SIGNALS.has(worker.process.signalCode) || life?.hasServed === false;
    return this.isStopping && isClean ? 0 : exitCodeOf(worker);
  }

  #onExit(worker: Worker): void {
    const life = this.#serving.get(worker);
    // Ended on request.
    if (life === undefined || this.isStopping) return;
    this.#serving.delete(worker);
    const { signalCode } = worker.process;
    this.#options.logger.error(
      { worker: worker.process.pid, exitCode: exitCodeOf(worker), signal: signalCode ?? undefined },
      "a worker exited unexpectedly and is replaced",
    );
    this.#noteEnd(worker, performance.now() - life.startedAt);
    void this.fill();
  }

  #noteEnd({ process: { signalCode } }: Worker, livedMs: number): void {
    if (livedMs > STEADY_MS) this.#shortLives = 0;
    else if (!FROM_OUTSIDE.has(signalCode)) this.#shortLives += 1;
  }
}

/** Addresses of a started worker; undefined if it ended first, or took too long and was killed. */
async function startedUrls(worker: Worker): Promise<ServiceUrls | undefined> {
  const killer = setTimeout(() => worker.process.kill("SIGKILL"), START_MS);
  try {
    return await new Promise((resolve) => {
      worker.on("message", (message: unknown) => {
        if (isMessage("started", message)) resolve(message);
      });
      worker.once("exit", () => resolve(undefined));
    });
  } finally {
    clearTimeout(killer);
  }
}

/** The worker's exit code; 1 if a signal ended it. */
function exitCodeOf(worker: Worker): number {
  return worker.process.exitCode ?? 1;
}
