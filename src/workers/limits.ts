import cluster from "node:cluster";
import { type RateLimiterAbstract, RateLimiterCluster, RateLimiterClusterMaster } from "rate-limiter-flexible";
import type { Config } from "../config/config.js";

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
