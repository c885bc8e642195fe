import { monitorEventLoopDelay } from "node:perf_hooks";
import { AggregatorRegistry, Registry } from "prom-client";
import { createCallMetrics } from "./call-log.js";
import { countOf, createCounter, createHistogram, gaugeOf, gaugesOf, type Metric } from "./metric.js";
import { METRICS } from "./metric-list.js";

/** The metrics of one process. */
export type Metrics = ReturnType<typeof createMetrics>;

/** @param version of the relay, for `relay_build_info`. */
export function createMetrics(version: string) {
  const calls = createCallMetrics();
  const ofProcess = createProcessMetrics();
  const refreshes = createCounter(METRICS.refreshes);
  const deliveries = createCounter(METRICS.webhookDeliveries);
  const faults = createCounter(METRICS.faults);
  const storeDuration = createHistogram(METRICS.storeDuration);
  const storeFailures = createCounter(METRICS.storeFailures);
  const sources: Array<() => readonly Metric[]> = [];
  return {
    call: calls.add,
    refresh: (provider: string, outcome: string) => refreshes.add({ provider, outcome }),
    delivery: (outcome: string) => deliveries.add({ outcome }),
    fault: (where: string) => faults.add({ where }),
    store(operation: "read" | "write", ms: number, isFailed: boolean): void {
      storeDuration.observe({ operation }, ms);
      if (isFailed) storeFailures.add({ operation });
    },
    /** Adds metrics that are kept elsewhere; `read` is called at each scrape. */
    addSource: (read: () => readonly Metric[]) => void sources.push(read),
    read: (): readonly Metric[] => [
      ...calls.read(),
      ...[refreshes, deliveries, faults, storeDuration, storeFailures].map((metric) => metric.read()),
      ...sources.flatMap((read) => read()),
      ...ofProcess.read(),
      buildInfo(version),
    ],
    /** Stops monitoring the event loop. */
    close: ofProcess.close,
  };
}

function buildInfo(version: string): Metric {
  return gaugesOf(METRICS.buildInfo, [{ labels: { version, node: process.version }, value: 1 }]);
}

/** Sampling interval of the event loop delay. 50 samples a second cost nothing measurable. */
const RESOLUTION_MS = 20;

const NS_PER_S = 1e9;

/** Event loop delay, CPU and memory of this process. Starts monitoring the event loop; each `read()` reports the delays since the previous one. */
function createProcessMetrics() {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const startedAt = (Date.now() - process.uptime() * 1000) / 1000;
  // Node.js records the time between two samples, which includes the sampling interval.
  const seconds = (ns: number) => Math.max(0, ns - RESOLUTION_MS * 1e6) / NS_PER_S;
  return {
    read() {
      // Not the label `quantile`: it belongs to summaries (promtool check metrics), and a summary has no maximum.
      const values = [
        { labels: { stat: "p50" }, value: seconds(delay.percentile(50)) },
        { labels: { stat: "p99" }, value: seconds(delay.percentile(99)) },
        { labels: { stat: "max" }, value: seconds(delay.max) },
      ];
      delay.reset();
      return [gaugesOf(METRICS.eventLoopDelay, values), ...usage(startedAt)];
    },
    close: () => void delay.disable(),
  };
}

function usage(startedAt: number): Metric[] {
  const { user, system } = process.cpuUsage();
  return [
    gaugeOf(METRICS.processes, 1),
    countOf(METRICS.cpuSeconds, (user + system) / 1e6),
    ...memory(),
    gaugeOf(METRICS.startTime, startedAt),
  ];
}

function memory(): Metric[] {
  try {
    const { rss, heapUsed, external } = process.memoryUsage();
    return [
      gaugeOf(METRICS.residentMemory, rss),
      gaugeOf(METRICS.heapUsed, heapUsed),
      gaugeOf(METRICS.externalMemory, external),
    ];
  } catch {
    // No file descriptor is left to read /proc/self/stat with. All other metrics are still worth reading.
    return [];
  }
}

/** Media type of {@link expositionOf} (Prometheus text format 0.0.4). */
export const EXPOSITION_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** Aggregates the metrics of one or more processes into text for Prometheus. */
export function expositionOf(processes: ReadonlyArray<readonly Metric[]>): Promise<string> {
  return registryOf(processes).metrics();
}

/** Aggregates the metrics of several processes as if they were one. */
export async function sumOf(processes: ReadonlyArray<readonly Metric[]>): Promise<readonly Metric[]> {
  return (await registryOf(processes).getMetricsAsJSON()) as unknown as readonly Metric[];
}

function registryOf(processes: ReadonlyArray<readonly Metric[]>): Registry {
  return AggregatorRegistry.aggregate(processes as unknown as object[]);
}
