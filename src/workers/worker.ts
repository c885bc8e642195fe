import type { Worker } from "node:cluster";
import cluster from "node:cluster";
import { on } from "node:events";
import {
  type RateLimiterAbstract,
  RateLimiterCluster,
  RateLimiterClusterMaster,
  RateLimiterMemory,
} from "rate-limiter-flexible";
import type { Config } from "../config/config.js";
import { createSingleFlight } from "../lib/turns.js";
import type { Metric } from "../telemetry/metric.js";

/** Reports to the supervisor that this worker is serving, and from then on sends it a heartbeat. */
export function tellStarted({ url, adminUrl }: ServiceUrls): void {
  process.send?.({ type: "started", url, adminUrl } satisfies Message);
  tellPulse();
}

/**
 * Resolves when this worker should stop, to how long idle connections are kept, in milliseconds. Either the supervisor
 * says so, or the supervisor is gone, or somebody sent SIGTERM to this process alone. Ctrl-C and the end of a terminal
 * signal the whole process group, and the supervisor acts on them.
 */
export function stopOrder(): Promise<number> {
  // Otherwise Node.js would exit this process as soon as the supervisor is gone, even in the middle of a refresh.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  // A message could not be sent, since the supervisor is gone.
  cluster.worker?.on("error", () => {});
  return new Promise((resolve) => {
    process.on("message", (message) => {
      if (isMessage("stop", message)) resolve(message.quietMs);
    });
    process.once("disconnect", () => resolve(0));
    process.on("SIGTERM", () => resolve(0));
    process.on("SIGINT", () => {});
    process.on("SIGHUP", () => {});
  });
}

/** Closes the channel to the supervisor, which would keep the process alive. */
export function leave(): void {
  if (process.connected) process.disconnect();
}

/** The metrics of all processes of one service. */
interface MetricsOfAll {
  /** Rejects when they are not available: sums over only some of the processes would go up and down. */
  read(): Promise<readonly Metric[]>;
  /** Hands this process's counts to the supervisor, which keeps them. */
  close(): Promise<void>;
}

/** Time for the supervisor to answer, in milliseconds; it waits less long for silent workers itself. */
const WAIT_MS = 3000;

/**
 * Reads the metrics of all workers. A single process is the whole service.
 *
 * @param readOwn returns this process's own metrics.
 */
export function metricsOverWorkers(readOwn: () => readonly Metric[]): MetricsOfAll {
  if (!cluster.isWorker) return { read: async () => readOwn(), close: async () => {} };
  const sendOwn = (isLast: boolean) => send({ type: "metrics", metrics: readOwn(), isLast });
  const onMessage = (message: unknown) => {
    if (isMessage("metricsAsked", message)) void sendOwn(false);
  };
  process.on("message", onMessage);
  let lastId = 0;
  const reading = createSingleFlight(() => {
    lastId += 1;
    return askSupervisor(lastId);
  });
  return {
    read: reading.run,
    async close() {
      process.off("message", onMessage);
      await sendOwn(true);
    },
  };
}

async function askSupervisor(id: number): Promise<readonly Metric[]> {
  const messages = on(process, "message", { signal: AbortSignal.timeout(WAIT_MS) });
  void send({ type: "metricsWanted", id });
  for await (const [message] of messages) {
    if (isMessage("metricsSum", message) && message.id === id) return message.metrics;
  }
  throw new Error("the supervisor's messages have ended");
}

/** Sends a message; resolves once it is written, or at once if the supervisor is gone. */
function send(message: Message): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}

/** Interval of the heartbeat, in milliseconds. */
const PULSE_MS = 3000;
/** By design the event loop is blocked for milliseconds at most; one blocked for 15 seconds hangs. */
const MAX_MISSED = 5;

/** Sends the supervisor a heartbeat, which shows that this worker's event loop is running. */
function tellPulse(): void {
  const message: Message = { type: "pulse" };
  // If the supervisor is gone, the 'disconnect' event stops this worker.
  const timer = setInterval(() => process.connected && process.send?.(message, () => {}), PULSE_MS);
  timer.unref();
}

/**
 * Calls `onSilent` once when a serving worker has missed too many heartbeats. Counts missed heartbeats rather than
 * time: a suspended machine has not missed any.
 */
export function watchPulse(worker: Worker, onSilent: () => void): void {
  let missed = 0;
  worker.on("message", (message: unknown) => {
    if (isMessage("pulse", message)) missed = 0;
  });
  const timer = setInterval(() => {
    if (++missed < MAX_MISSED) return;
    clearInterval(timer);
    onSilent();
  }, PULSE_MS);
  timer.unref();
  worker.once("exit", () => clearInterval(timer));
}

/** Addresses of a service. */
export interface ServiceUrls {
  readonly url: string;
  /** Address of the administration port; undefined if it is off. */
  readonly adminUrl: string | undefined;
}

/** Messages between workers and their supervisor. */
export type Message =
  /** From a worker: it is serving. */
  | ({ readonly type: "started" } & ServiceUrls)
  /** To a worker: finish your work and exit. `quietMs`: how long idle connections are kept, in milliseconds. */
  | { readonly type: "stop"; readonly quietMs: number }
  /** From a worker, every few seconds: its event loop is running. */
  | { readonly type: "pulse" }
  /** From a worker: requests the metrics of all workers; the answer repeats `id`. */
  | { readonly type: "metricsWanted"; readonly id: number }
  /** To a worker: requests its metrics. */
  | { readonly type: "metricsAsked" }
  /** From a worker: its metrics, either requested or its last report before it ends. */
  | { readonly type: "metrics"; readonly metrics: readonly Metric[]; readonly isLast: boolean }
  /** To a worker: the metrics of all workers together. */
  | { readonly type: "metricsSum"; readonly id: number; readonly metrics: readonly Metric[] };

/** Whether a message is of this type; messages of other modules use the same channel. */
export function isMessage<Type extends Message["type"]>(
  type: Type,
  message: unknown,
): message is Extract<Message, { readonly type: Type }> {
  return typeof message === "object" && message !== null && "type" in message && message.type === type;
}

/** Timeout for the supervisor's answer, in milliseconds; it takes a fraction of this. */
const LIMITER_TIMEOUT_MS = 3000;

/** Makes the supervisor count calls for all workers. */
export function countForWorkers(): void {
  new RateLimiterClusterMaster();
}

/**
 * Creates a limiter that counts over all workers; undefined in a single process. When the supervisor is gone, a worker
 * finishes the calls it has, and counts those alone.
 */
export function limiterOverWorkers(
  points: number,
  duration: number,
): Pick<RateLimiterAbstract, "consume" | "get"> | undefined {
  if (!cluster.isWorker) return undefined;
  const options = { keyPrefix: `calls-${points}`, points, duration, timeoutMs: LIMITER_TIMEOUT_MS };
  const shared = new RateLimiterCluster(options);
  const own = new RateLimiterMemory(options);
  const current = () => (process.connected ? shared : own);
  return { consume: (key) => current().consume(key), get: (key) => current().get(key) };
}

/** The configuration of one worker: its share of the limits for all workers together. */
export function shareOf(config: Config): Config {
  const share = (all: number) => Math.ceil(all / config.workers);
  return { ...config, maxInFlight: share(config.maxInFlight), maxBufferedBytes: share(config.maxBufferedBytes) };
}
