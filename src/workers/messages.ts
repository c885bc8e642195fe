import cluster from "node:cluster";
import { type RateLimiterAbstract, RateLimiterCluster, RateLimiterClusterMaster } from "rate-limiter-flexible";
import type { Config } from "../config/config.js";
import type { Metric } from "../telemetry/metric.js";

/** Where a service listens. */
export interface ServiceUrls {
  readonly url: string;
  /** The administration port; undefined where it is switched off. */
  readonly adminUrl: string | undefined;
}

/** What a worker tells its supervisor: it serves. */
export interface StartedMessage extends ServiceUrls {
  readonly type: "started";
}

/** What a supervisor tells a worker: to finish what it has and end. */
export interface StopMessage {
  readonly type: "stop";
  /** How long connections that rest are kept, in milliseconds. */
  readonly quietMs: number;
}

/** What a worker tells its supervisor every few seconds: its event loop turns. */
export interface PulseMessage {
  readonly type: "pulse";
}

/** A worker wants the metrics of all workers. */
export interface MetricsWantedMessage {
  readonly type: "metricsWanted";
  /** Comes back in the answer. */
  readonly id: number;
}

/** The supervisor wants the metrics of one worker. */
export interface MetricsAskedMessage {
  readonly type: "metricsAsked";
}

/** How the metrics of one worker stand: asked for, or its last word. */
export interface MetricsMessage {
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

export function isStop(message: unknown): message is StopMessage {
  return typeOf(message) === "stop";
}

export function isPulse(message: unknown): message is PulseMessage {
  return typeOf(message) === "pulse";
}

export function isMetricsWanted(message: unknown): message is MetricsWantedMessage {
  return typeOf(message) === "metricsWanted";
}

export function isMetricsAsked(message: unknown): message is MetricsAskedMessage {
  return typeOf(message) === "metricsAsked";
}

export function isMetrics(message: unknown): message is MetricsMessage {
  return typeOf(message) === "metrics";
}

export function isMetricsSum(message: unknown): message is MetricsSumMessage {
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
