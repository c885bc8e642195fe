import type { Worker } from "node:cluster";
import cluster from "node:cluster";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Metric } from "../telemetry/metric.js";
import { sumOf } from "../telemetry/metrics.js";
import { isMessage, type Message, type ServiceUrls, watchPulse } from "./worker.js";

/** Adds up the metrics of all workers for whichever of them is asked. */
interface WorkerMetrics {
  /** Counts a worker from now on; what it has counted is kept when it ends. */
  add(worker: Worker): void;
}

/** A worker answers in a few milliseconds unless its event loop is held; then what it said last counts. */
const WAIT_MS = 1000;

/** Nothing counted yet. A sum never goes back: it is of what each worker said last, those that have ended included. */
function createWorkerMetrics(): WorkerMetrics {
  const latest = new Map<Worker, readonly Metric[]>();
  const asked = new Map<Worker, () => void>();
  let ended: readonly Metric[] = [];
  let lastKept = Promise.resolve();
  let gathering: Promise<readonly Metric[]> | undefined;

  async function gather(): Promise<readonly Metric[]> {
    const answers = [...latest.keys()].map((worker) => ask(worker, asked));
    const waiting = new AbortController();
    await Promise.race([Promise.all(answers), delay(WAIT_MS, undefined, { signal: waiting.signal }).catch(() => {})]);
    waiting.abort();
    return sumOf([ended, ...latest.values()]);
  }

  function onMessage(worker: Worker, message: unknown): void {
    if (isMessage("metrics", message)) {
      latest.set(worker, message.metrics);
      asked.get(worker)?.();
      if (message.isLast) keep(worker);
    } else if (isMessage("metricsWanted", message)) {
      gathering ??= gather().finally(() => {
        gathering = undefined;
      });
      void gathering.then((metrics) => send(worker, { type: "metricsSum", id: message.id, metrics }));
    }
  }

  /** Gauges end with their process. One worker after the other, since each adds to the same sum. */
  function keep(worker: Worker): void {
    asked.get(worker)?.();
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
      // For one that had no last word. It may come after 'exit'; after this nothing does.
      worker.process.once("close", () => keep(worker));
    },
  };
}

/** Resolves when the worker has answered, or cannot any more. */
function ask(worker: Worker, asked: Map<Worker, () => void>): Promise<void> {
  return new Promise((resolve) => {
    asked.set(worker, resolve);
    if (!send(worker, { type: "metricsAsked" })) resolve();
  });
}

/** False when the worker is gone. */
function send(worker: Worker, message: Message): boolean {
  if (!worker.isConnected()) return false;
  worker.send(message);
  return true;
}

/** What supervising needs. */
interface SupervisorOptions {
  readonly count: number;
  readonly logger: Logger;
  /** Resolves when everything is to end. */
  readonly stop: Promise<void>;
  /** Called once, when all workers serve. */
  readonly started?: (urls: ServiceUrls) => void;
  /** How long a worker may take to finish its calls, in milliseconds; it is killed some time after that. */
  readonly graceMs: number;
}

/** Store, keys and definitions are read, and the port is bound, in a second or two. Milliseconds. */
const START_MS = 30_000;
/** Beside its calls a worker finishes refreshes and deliveries, each with a deadline of its own. Milliseconds. */
const MARGIN_MS = 20_000;
/**
 * How long a worker that is replaced keeps connections that rest: whoever uses one in that time is told to open a new
 * one, and what rests longer is closed as any idle connection may be (RFC 9112 section 9.5). Milliseconds.
 */
const QUIET_MS = 2000;
/**
 * Pause before a worker is replaced where those before it ended by themselves soon after their start: none for the first
 * two, then a second, doubled up to this. Milliseconds.
 */
const MAX_PAUSE_MS = 30_000;
/** A worker that lived this long did not end of how it was started, in milliseconds. */
const STEADY_MS = 60_000;
const STOP_SIGNALS: ReadonlySet<string | null> = new Set(["SIGTERM", "SIGINT"]);
/** Signals of others, such as an operator and the kernel that is out of memory: no sign that the next one ends as well. */
const FROM_OUTSIDE: ReadonlySet<string | null> = new Set([...STOP_SIGNALS, "SIGKILL"]);

/**
 * Runs `count` workers on one port: replaces each that ends, and on SIGHUP all of them, one after the other, so that
 * every call finds one. Resolves to the exit code: 0 after a clean stop, or that of a worker that could not start.
 */
export async function supervise(options: SupervisorOptions): Promise<number> {
  const { count, logger } = options;
  const supervisor = new Supervisor(options);
  // From the start to the end: unheard it would end this process, and the workers with it.
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

/** Ends all workers at once, with whatever they are doing. */
export function killWorkers(): void {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGKILL");
}

/** One worker that serves. */
interface Life {
  readonly startedAt: number;
  /** How many signals to start anew had come before it was started: it has read what was there then. */
  readonly generation: number;
}

type Started = (ServiceUrls & { readonly worker: Worker }) | number;

/** The workers of one service; ended by `stop()`. */
class Supervisor {
  readonly #options: SupervisorOptions;
  /** All that have not ended: those that start, serve, or are being ended. */
  readonly #living = new Set<Worker>();
  readonly #serving = new Map<Worker, Life>();
  readonly #starting = new Set<Promise<Started>>();
  readonly #metrics = createWorkerMetrics();
  readonly #stopping = new AbortController();
  #generation = 0;
  /** Workers in a row that ended by themselves soon after their start. */
  #shortLives = 0;
  #restart: Promise<void> | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  /** Starts a worker. Resolves to where it listens, or to its exit code when it could not start. */
  start(): Promise<Started> {
    const started = this.#fork(this.#generation).finally(() => this.#starting.delete(started));
    this.#starting.add(started);
    return started;
  }

  /** Starts workers until there are as many as there are to be. May run more than once at the same time. */
  async fill(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted && this.#isMissingOne) {
      // Where no worker is left, nothing but this pause keeps the process from ending.
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
    this.#living.add(worker);
    worker.once("exit", () => this.#living.delete(worker));
    // What could not be sent to one that is ending; its exit says the rest.
    worker.on("error", () => {});
    const urls = await startedUrls(worker);
    if (urls === undefined) {
      this.#noteEnd(worker, 0);
      return exitCodeOf(worker);
    }
    this.#serving.set(worker, { startedAt: performance.now(), generation });
    this.#metrics.add(worker);
    worker.once("exit", () => this.#onExit(worker));
    watchPulse(worker, () => {
      this.#options.logger.error({ worker: worker.process.pid }, "a worker does not answer and is ended");
      worker.process.kill("SIGKILL");
    });
    return { worker, url: urls.url, adminUrl: urls.adminUrl };
  }

  /** Replaces every worker that was started before this call. One that comes during a run of it makes that run longer. */
  restart(): Promise<void> {
    if (this.isStopping) return Promise.resolve();
    this.#generation += 1;
    this.#options.logger.info({ workers: this.#serving.size }, "restarting");
    this.#restart ??= this.#replaceAll().finally(() => {
      this.#restart = undefined;
    });
    return this.#restart;
  }

  /** Tells all workers to end, those that are starting as well; resolves to 0 when each of them has ended well. */
  async stop(): Promise<number> {
    this.#options.logger.info({ workers: this.#living.size }, "stopping");
    this.#stopping.abort();
    const codes = await Promise.all([...this.#living].map((worker) => this.#end(worker, 0)));
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
        logger.error({ exitCode: next }, "the new worker could not start; the others go on");
        // The old one may have ended meanwhile, counting on the new one.
        void this.fill();
        if (generation === this.#generation) return;
      } else if (this.#starting.size > 0) {
        // It may have been started before the signal.
        await Promise.all(this.#starting);
      } else {
        logger.info({ workers: this.#serving.size }, "restarted");
        return;
      }
    }
  }

  /** Resolves to the exit code. */
  async #end(worker: Worker, quietMs: number): Promise<number> {
    const isServing = this.#serving.delete(worker);
    if (worker.isDead()) return exitCodeOf(worker);
    // One that starts may not hear messages yet.
    if (!isServing || !send(worker, { type: "stop", quietMs })) worker.process.kill("SIGTERM");
    const killer = setTimeout(() => worker.process.kill("SIGKILL"), quietMs + this.#options.graceMs + MARGIN_MS);
    await once(worker, "exit");
    clearTimeout(killer);
    const { signalCode } = worker.process;
    return this.isStopping && STOP_SIGNALS.has(signalCode) ? 0 : exitCodeOf(worker);
  }

  #onExit(worker: Worker): void {
    const life = this.#serving.get(worker);
    // Asked to end.
    if (life === undefined || this.isStopping) return;
    this.#serving.delete(worker);
    const { signalCode } = worker.process;
    this.#options.logger.error(
      { worker: worker.process.pid, exitCode: exitCodeOf(worker), signal: signalCode ?? undefined },
      "a worker ended by itself and is replaced",
    );
    this.#noteEnd(worker, performance.now() - life.startedAt);
    void this.fill();
  }

  #noteEnd({ process: { signalCode } }: Worker, livedMs: number): void {
    if (livedMs > STEADY_MS) this.#shortLives = 0;
    else if (!FROM_OUTSIDE.has(signalCode)) this.#shortLives += 1;
  }
}

/** Where the worker listens; undefined when it ended before, or took too long and was ended. */
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

/** 1 for one that a signal ended. */
function exitCodeOf(worker: Worker): number {
  return worker.process.exitCode ?? 1;
}
