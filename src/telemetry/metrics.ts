import { monitorEventLoopDelay } from "node:perf_hooks";
import { AggregatorRegistry, Registry } from "prom-client";
import { type CallRecord, createCallMetrics } from "./call-log.js";
import {
  countOf,
  createCounter,
  createObservations,
  gaugeOf,
  gaugesOf,
  histogramOf,
  type Metric,
  observe,
} from "./metric.js";
import { METRICS } from "./metric-list.js";

/** Everything that one process counts and measures. */
export interface Metrics {
  readonly call: (call: CallRecord) => void;
  /** A refresh of a token has ended. */
  readonly refresh: (provider: string, outcome: string) => void;
  /** An attempt to deliver a webhook has ended. */
  readonly delivery: (outcome: string) => void;
  /** A fault of ours, by place. */
  readonly fault: (where: string) => void;
  readonly store: StoreMetrics["add"];
  /** Adds what somebody else counts; `read` is called at each scrape. */
  addSource(read: () => readonly Metric[]): void;
  /** How everything stands. */
  read(): readonly Metric[];
  /** Watches the process no more. */
  close(): void;
}

/** @param version of the relay, for `relay_build_info`. */
export function createMetrics(version: string): Metrics {
  const calls = createCallMetrics();
  const store = createStoreMetrics();
  const ofProcess = createProcessMetrics();
  const refreshes = createCounter(METRICS.refreshes);
  const deliveries = createCounter(METRICS.webhookDeliveries);
  const faults = createCounter(METRICS.faults);
  const sources: Array<() => readonly Metric[]> = [];
  return {
    call: calls.add,
    refresh: (provider, outcome) => refreshes.add({ provider, outcome }),
    delivery: (outcome) => deliveries.add({ outcome }),
    fault: (where) => faults.add({ where }),
    store: store.add,
    addSource: (read) => void sources.push(read),
    read: () => [
      ...calls.read(),
      refreshes.read(),
      deliveries.read(),
      faults.read(),
      ...store.read(),
      ...sources.flatMap((read) => read()),
      ...ofProcess.read(),
      buildInfo(version),
    ],
    close: ofProcess.close,
  };
}

function buildInfo(version: string): Metric {
  return gaugesOf(METRICS.buildInfo, [{ labels: { version, node: process.version }, value: 1 }]);
}

/** Figures of this process. */
interface ProcessMetrics {
  read(): readonly Metric[];
  close(): void;
}

/** The delay is looked at so often, in milliseconds: 50 times a second costs nothing that can be measured. */
const RESOLUTION_MS = 20;

const NS_PER_S = 1e9;

/** Begins to watch the event loop. Delays are those since the last time that they were read. */
function createProcessMetrics(): ProcessMetrics {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const startedAt = (Date.now() - process.uptime() * 1000) / 1000;
  // What is recorded is the time between two looks.
  const seconds = (ns: number) => Math.max(0, ns - RESOLUTION_MS * 1e6) / NS_PER_S;
  return {
    read() {
      // No label `quantile`, which is a summary's (promtool check metrics); a summary has no maximum.
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
  const { rss, heapUsed, external } = process.memoryUsage();
  return [
    gaugeOf(METRICS.processes, 1),
    countOf(METRICS.cpuSeconds, (user + system) / 1e6),
    gaugeOf(METRICS.residentMemory, rss),
    gaugeOf(METRICS.heapUsed, heapUsed),
    gaugeOf(METRICS.externalMemory, external),
    gaugeOf(METRICS.startTime, startedAt),
  ];
}

/** What is done with the store. */
type StoreOperation = "read" | "write";

/** Times and failures of the store. */
interface StoreMetrics {
  add(operation: StoreOperation, ms: number, isFailed: boolean): void;
  read(): readonly Metric[];
}

/** Nothing measured yet. */
function createStoreMetrics(): StoreMetrics {
  const { storeDuration, storeFailures } = METRICS;
  const durations = { read: createObservations(storeDuration), write: createObservations(storeDuration) };
  const failures = createCounter(storeFailures);
  return {
    add(operation, ms, isFailed) {
      observe(storeDuration, durations[operation], ms);
      if (isFailed) failures.add({ operation });
    },
    read: () => [
      histogramOf(
        storeDuration,
        Object.entries(durations).map(([operation, figures]) => [{ operation }, figures] as const),
      ),
      failures.read(),
    ],
  };
}

/** Media type of {@link expositionOf} (Prometheus text format 0.0.4). */
export const EXPOSITION_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** Metrics of one or more processes, added up, as text for Prometheus. */
export function expositionOf(processes: ReadonlyArray<readonly Metric[]>): Promise<string> {
  return registryOf(processes).metrics();
}

/** Metrics of several processes as if they were one. */
export async function sumOf(processes: ReadonlyArray<readonly Metric[]>): Promise<readonly Metric[]> {
  return (await registryOf(processes).getMetricsAsJSON()) as unknown as readonly Metric[];
}

function registryOf(processes: ReadonlyArray<readonly Metric[]>): Registry {
  return AggregatorRegistry.aggregate(processes as unknown as object[]);
}
