import type { Worker } from "node:cluster";
import cluster from "node:cluster";
import { type RateLimiterAbstract, RateLimiterCluster, RateLimiterClusterMaster } from "rate-limiter-flexible";
import type { Config } from "../config/config.js";
import type { Metric } from "../telemetry/metric.js";

/** Tells the supervisor that this worker serves, and from then on that it is alive. */
export function tellStarted({ url, adminUrl }: ServiceUrls): void {
  process.send?.({ type: "started", url, adminUrl } satisfies Message);
  tellPulse();
}

/**
 * Resolves when this worker is to end: to how long connections that rest are kept, in milliseconds. The supervisor says
 * so, or it is gone, or somebody sent SIGTERM to this process alone. Ctrl-C, and the end of a terminal, reach the whole
 * group of processes, and the supervisor acts on them.
 */
export function stopOrder(): Promise<number> {
  // Node.js would end this process at once when the supervisor is gone, in the middle of a refresh.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
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

/** The channel to the supervisor would keep the process alive. */
export function leave(): void {
  if (process.connected) process.disconnect();
}

/** The metrics of all processes of one service. */
interface MetricsOfAll {
  /** Rejects when they cannot be had: sums over a part of the processes would go back and forth. */
  read(): Promise<readonly Metric[]>;
  /** Leaves what was counted here to the processes that go on. */
  close(): Promise<void>;
}

/** The supervisor itself waits for silent workers, and less long, in milliseconds. */
const WAIT_MS = 3000;

/** @param readOwn how this process's own metrics stand. A process that is alone is the whole service. */
export function metricsOverWorkers(readOwn: () => readonly Metric[]): MetricsOfAll {
  if (!cluster.isWorker) return { read: async () => readOwn(), close: async () => {} };
  const sendOwn = (isLast: boolean) => send({ type: "metrics", metrics: readOwn(), isLast });
  const onMessage = (message: unknown) => {
    if (isMessage("metricsAsked", message)) void sendOwn(false);
  };
  process.on("message", onMessage);
  let lastId = 0;
  let reading: Promise<readonly Metric[]> | undefined;
  return {
    read() {
      lastId += 1;
      reading ??= askSupervisor(lastId).finally(() => {
        reading = undefined;
      });
      return reading;
    },
    async close() {
      process.off("message", onMessage);
      await sendOwn(true);
    },
  };
}

function askSupervisor(id: number): Promise<readonly Metric[]> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer);
      process.off("message", onMessage);
    };
    const onMessage = (message: unknown) => {
      if (!isMessage("metricsSum", message) || message.id !== id) return;
      settle();
      resolve(message.metrics);
    };
    const timer = setTimeout(() => {
      settle();
      reject(new Error("the supervisor does not answer"));
    }, WAIT_MS);
    process.on("message", onMessage);
    void send({ type: "metricsWanted", id });
  });
}

/** Resolves when it is written; a supervisor that is gone is told nothing. */
function send(message: Message): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}

/** How often a worker says that its event loop turns, in milliseconds. */
const PULSE_MS = 3000;
/** The event loop is held for milliseconds at a time by design; one that is held for a quarter of a minute hangs. */
const MAX_MISSED = 5;

/** Tells the supervisor that the event loop of this worker turns, again and again. */
function tellPulse(): void {
  const message: Message = { type: "pulse" };
  // A supervisor that is gone ends this worker in another way.
  const timer = setInterval(() => process.connected && process.send?.(message, () => {}), PULSE_MS);
  timer.unref();
}

/**
 * Calls `onSilent` once when a worker that serves was not heard of for too long. Missed pulses are counted, not time: a
 * machine that was suspended has not missed any.
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

/** Where a service listens. */
export interface ServiceUrls {
  readonly url: string;
  /** The administration port; undefined where it is switched off. */
  readonly adminUrl: string | undefined;
}

/** What workers and their supervisor tell each other. */
export type Message =
  /** From a worker: it serves. */
  | ({ readonly type: "started" } & ServiceUrls)
  /** To a worker: finish what you have and end. `quietMs`: how long connections that rest are kept, in milliseconds. */
  | { readonly type: "stop"; readonly quietMs: number }
  /** From a worker, every few seconds: its event loop turns. */
  | { readonly type: "pulse" }
  /** From a worker: it wants the metrics of all workers; `id` comes back in the answer. */
  | { readonly type: "metricsWanted"; readonly id: number }
  /** To a worker: its metrics are wanted. */
  | { readonly type: "metricsAsked" }
  /** From a worker: its metrics, asked for or its last word, after which nothing comes. */
  | { readonly type: "metrics"; readonly metrics: readonly Metric[]; readonly isLast: boolean }
  /** To a worker: the metrics of all workers together. */
  | { readonly type: "metricsSum"; readonly id: number; readonly metrics: readonly Metric[] };

/** Whether a message is of this type; others of the cluster module pass by on the same channel. */
export function isMessage<Type extends Message["type"]>(
  type: Type,
  message: unknown,
): message is Extract<Message, { readonly type: Type }> {
  return typeof message === "object" && message !== null && "type" in message && message.type === type;
}

/** The supervisor answers in a fraction of this, in milliseconds. */
const LIMITER_TIMEOUT_MS = 3000;

/** Makes the supervisor count for all workers. */
export function countForWorkers(): void {
  new RateLimiterClusterMaster();
}

/** A limiter that counts over all workers; undefined in a process that is alone. */
export function limiterOverWorkers(points: number, duration: number): RateLimiterAbstract | undefined {
  if (!cluster.isWorker) return undefined;
  return new RateLimiterCluster({ keyPrefix: `calls-${points}`, points, duration, timeoutMs: LIMITER_TIMEOUT_MS });
}

/** One worker's share of what all of them may hold. */
export function shareOf(config: Config): Config {
  const share = (all: number) => Math.ceil(all / config.workers);
  return { ...config, maxInFlight: share(config.maxInFlight), maxBufferedBytes: share(config.maxBufferedBytes) };
}
