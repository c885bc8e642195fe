import { createCounter } from "./counter.js";
import { createObservations, type HistogramOptions, histogramOf, observe } from "./histogram.js";
import type { Metric } from "./metric.js";

/** What is done with the store. */
type StoreOperation = "read" | "write";

/** Times and failures of the store. */
export interface StoreMetrics {
  add(operation: StoreOperation, ms: number, isFailed: boolean): void;
  read(): readonly Metric[];
}

/** From a row in SQLite's own cache to a database that its timeout ends. */
const DURATION: HistogramOptions = {
  name: "relay_store_duration_seconds",
  help: "Reads and writes of the database, with the wait for a lock or a connection. Rows kept in memory are no reads.",
  bounds: [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
};

/** Nothing measured yet. */
export function createStoreMetrics(): StoreMetrics {
  const durations = { read: createObservations(DURATION), write: createObservations(DURATION) };
  const failures = createCounter({
    name: "relay_store_failures_total",
    help: "Reads and writes of the database that failed.",
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
