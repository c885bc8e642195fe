import type { CallRecord } from "./call-log.js";
import { createCallMetrics } from "./call-metrics.js";
import { createCounter } from "./counter.js";
import { gaugesOf, type Metric } from "./metric.js";
import { createProcessMetrics } from "./process-metrics.js";
import { createStoreMetrics, type StoreMetrics } from "./store-metrics.js";

/** Everything that one process counts and measures. */
export interface Metrics {
  readonly call: (call: CallRecord) => void;
  /** A renewal of a token has ended. */
  readonly renewal: (provider: string, outcome: string) => void;
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
  const { renewals, deliveries, faults } = createCounters();
  const sources: Array<() => readonly Metric[]> = [];
  return {
    call: calls.add,
    renewal: (provider, outcome) => renewals.add({ provider, outcome }),
    delivery: (outcome) => deliveries.add({ outcome }),
    fault: (where) => faults.add({ where }),
    store: store.add,
    addSource: (read) => void sources.push(read),
    read: () => [
      ...calls.read(),
      renewals.read(),
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
    renewals: createCounter({
      name: "relay_renewals_total",
      help: "Renewals of access tokens, by how they ended.",
      labels: ["provider", "outcome"],
    }),
    deliveries: createCounter({
      name: "relay_webhook_deliveries_total",
      help: "Attempts to deliver a webhook, by how they ended.",
      labels: ["outcome"],
      expected: [{ outcome: "delivered" }, { outcome: "retry" }, { outcome: "given_up" }],
    }),
    faults: createCounter({
      name: "relay_faults_total",
      help: "Faults, by where they were met; client and session are what clients sent wrong. The log says more.",
      labels: ["where"],
    }),
  };
}

function buildInfo(version: string): Metric {
  const options = { name: "relay_build_info", help: "Versions; always 1.", aggregator: "max" } as const;
  return gaugesOf(options, [{ labels: { version, node: process.version }, value: 1 }]);
}
