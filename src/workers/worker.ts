import type { Worker } from "node:cluster";
import cluster from "node:cluster";
import { type RateLimiterAbstract, RateLimiterCluster, RateLimiterClusterMaster } from "rate-limiter-flexible";
import type { Config } from "../config/config.js";
import type { Metric } from "../telemetry/metric.js";

/** Tells the supervisor that this worker serves, and from then on that it is alive. */
export function tellStarted({ url, adminUrl }: ServiceUrls): void {
  const message: StartedMessage = { type: "started", url, adminUrl };
  process.send?.(message);
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
      if (isStop(message)) resolve(message.quietMs);
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
    if (isMetricsAsked(message)) void sendOwn(false);
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
      if (!isMetricsSum(message) || message.id !== id) return;
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
function send(message: MetricsMessage | MetricsWantedMessage): Promise<void> {
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
  const message: PulseMessage = { type: "pulse" };
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
    if (isPulse(message)) missed = 0;
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

/** What a worker tells its supervisor: it serves. */
interface StartedMessage extends ServiceUrls {
  readonly type: "started";
}

/** What a supervisor tells a worker: to finish what it has and end. */
export interface StopMessage {
  readonly type: "stop";
  /** How long connections that rest are kept, in milliseconds. */
  readonly quietMs: number;
}

/** What a worker tells its supervisor every few seconds: its event loop turns. */
interface PulseMessage {
  readonly type: "pulse";
}

/** A worker wants the metrics of all workers. */
interface MetricsWantedMessage {
  readonly type: "metricsWanted";
  /** Comes back in the answer. */
  readonly id: number;
}

/** The supervisor wants the metrics of one worker. */
export interface MetricsAskedMessage {
  readonly type: "metricsAsked";
}

/** How the metrics of one worker stand: asked for, or its last word. */
interface MetricsMessage {
  readonly type: "metrics";
  readonly metrics: readonly Metric[];
  /** Nothing comes after it. */
  readonly isLast: boolean;
}

/** Metrics of all workers together. */
export interface MetricsSumMessage {
  readonly type: "metricsSum";
  readonly id: number;
  readonly metrics: readonly Metric[];
}

/** Other messages of the cluster module pass by on the same channel. */
export function isStarted(message: unknown): message is StartedMessage {
  return typeOf(message) === "started";
}

function isStop(message: unknown): message is StopMessage {
  return typeOf(message) === "stop";
}

function isPulse(message: unknown): message is PulseMessage {
  return typeOf(message) === "pulse";
}

export function isMetricsWanted(message: unknown): message is MetricsWantedMessage {
  return typeOf(message) === "metricsWanted";
}

function isMetricsAsked(message: unknown): message is MetricsAskedMessage {
  return typeOf(message) === "metricsAsked";
}

export function isMetrics(message: unknown): message is MetricsMessage {
  return typeOf(message) === "metrics";
}

function isMetricsSum(message: unknown): message is MetricsSumMessage {
  return typeOf(message) === "metricsSum";
}

function typeOf(message: unknown): unknown {
  return typeof message === "object" && message !== null && "type" in message ? message.type : undefined;
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
