import { setTimeout as delay } from "node:timers/promises";
import type { ConnectionCounts } from "../store/connection-counts.js";
import { gaugeOf, gaugesOf, type Metric } from "../telemetry/metric.js";

/** What showing the number of connections needs. */
export interface ConnectionGaugeOptions {
  readonly count: () => Promise<ConnectionCounts>;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** Hears why they cannot be counted. */
  readonly onFault: (error: unknown) => void;
}

/** Counting walks over an index entry of every connection: once a minute is often enough for a figure that moves slowly. */
const FRESH_MS = 60_000;
/** How long a scrape waits for a count that is under way; then it has the last one, or none. Milliseconds. */
const WAIT_MS = 500;

const STATES = {
  name: "relay_connections",
  help: "Stored connections by state, counted at most once a minute.",
  aggregator: "max",
} as const;
const REFRESH_FAILING = {
  name: "relay_connections_refresh_failing",
  help: "Active connections whose last refresh failed, counted at most once a minute.",
  aggregator: "max",
} as const;

/** Shows how many connections the store has. Never rejects: figures that are not to be had are left out. */
export function createConnectionGauge({ count, now, onFault }: ConnectionGaugeOptions): () => Promise<Metric[]> {
  let counts: ConnectionCounts | undefined;
  let startedAt = Number.NEGATIVE_INFINITY;
  let counting = Promise.resolve();

  async function recount(): Promise<void> {
    try {
      counts = await count();
    } catch (error) {
      counts = undefined;
      onFault(error);
    }
  }

  return async () => {
    if (now() - startedAt >= FRESH_MS) {
      startedAt = now();
      counting = counting.then(recount);
    }
    await Promise.race([counting, delay(WAIT_MS, undefined, { ref: false })]);
    if (counts === undefined) return [];
    const states = [...counts.states].map(([state, value]) => ({ labels: { state: state.toLowerCase() }, value }));
    return [gaugesOf(STATES, states), gaugeOf(REFRESH_FAILING, counts.refreshFailing)];
  };
}
