import { monitorEventLoopDelay } from "node:perf_hooks";
import { AggregatorRegistry, Registry } from "prom-client";
import { type CallRecord, createCallMetrics } from "./call-log.js";
import {
  countOf,
  createCounter,
  createObservations,
  gaugeOf,
  gaugesOf,
  type HistogramOptions,
  histogramOf,
  type Metric,
  observe,
} from "./metric.js";

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
  const { refreshes, deliveries, faults } = createCounters();
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

function createCounters() {
  return {
    refreshes: createCounter({
      name: "relay_refreshes_total",
      help: "Refreshes of access tokens, by outcome.",
      labels: ["provider", "outcome"],
    }),
    deliveries: createCounter({
      name: "relay_webhook_deliveries_total",
      help: "Attempts to deliver a webhook, by outcome.",
      labels: ["outcome"],
      expected: [{ outcome: "delivered" }, { outcome: "retry" }, { outcome: "given_up" }],
    }),
    faults: createCounter({
      name: "relay_faults_total",
      help: "Faults, by where they occurred; client and session are mistakes of clients. The log has the details.",
      labels: ["where"],
    }),
  };
}

function buildInfo(version: string): Metric {
  const options = { name: "relay_build_info", help: "Versions; always 1.", aggregator: "max" } as const;
  return gaugesOf(options, [{ labels: { version, node: process.version }, value: 1 }]);
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
      const loop = {
        name: "relay_event_loop_delay_seconds",
        help: "Event loop delay since the last scrape; of several processes the worst.",
        aggregator: "max",
      } as const;
      // No label `quantile`, which is a summary's (promtool check metrics); a summary has no maximum.
      const values = [
        { labels: { stat: "p50" }, value: seconds(delay.percentile(50)) },
        { labels: { stat: "p99" }, value: seconds(delay.percentile(99)) },
        { labels: { stat: "max" }, value: seconds(delay.max) },
      ];
      delay.reset();
      return [gaugesOf(loop, values), ...usage(startedAt)];
    },
    close: () => void delay.disable(),
  };
}

function usage(startedAt: number): Metric[] {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  return [
    gaugeOf({ name: "relay_processes", help: "Processes that answered this scrape." }, 1),
    countOf({ name: "process_cpu_seconds_total", help: "CPU time, user and system." }, (user + system) / 1e6),
    gaugeOf({ name: "process_resident_memory_bytes", help: "Resident memory." }, rss),
    gaugeOf({ name: "nodejs_heap_size_used_bytes", help: "Used V8 heap." }, heapUsed),
    gaugeOf({ name: "nodejs_external_memory_bytes", help: "Memory of buffers outside the V8 heap." }, external),
    gaugeOf(
      {
        name: "process_start_time_seconds",
        help: "Start time of the oldest process, in seconds since the epoch.",
        aggregator: "min",
      },
      startedAt,
    ),
  ];
}

/** What is done with the store. */
type StoreOperation = "read" | "write";

/** Times and failures of the store. */
interface StoreMetrics {
  add(operation: StoreOperation, ms: number, isFailed: boolean): void;
  read(): readonly Metric[];
}

/** From a row in SQLite's own cache to a database that its timeout ends. */
const DURATION: HistogramOptions = {
  name: "relay_store_duration_seconds",
  help: "Database reads and writes, including the wait for a lock or a connection. Rows cached in memory do not count.",
  bounds: [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
};

/** Nothing measured yet. */
function createStoreMetrics(): StoreMetrics {
  const durations = { read: createObservations(DURATION), write: createObservations(DURATION) };
  const failures = createCounter({
    name: "relay_store_failures_total",
    help: "Database reads and writes that failed.",
    labels: ["operation"],
    expected: [{ operation: "read" }, { operation: "write" }],
  });
  return {
    add(operation, ms, isFailed) {
      observe(DURATION, durations[operation], ms);
      if (isFailed) failures.add({ operation });
    },
    read: () => [
      histogramOf(
        DURATION,
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
