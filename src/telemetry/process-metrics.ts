import { monitorEventLoopDelay } from "node:perf_hooks";
import { countOf, gaugeOf, gaugesOf, type Metric } from "./metric.js";

/** Figures of this process. */
export interface ProcessMetrics {
  read(): readonly Metric[];
  close(): void;
}

/** The delay is looked at so often, in milliseconds: 50 times a second costs nothing that can be measured. */
const RESOLUTION_MS = 20;

const NS_PER_S = 1e9;

/** Begins to watch the event loop. Delays are those since the last time that they were read. */
export function createProcessMetrics(): ProcessMetrics {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const startedAt = (Date.now() - process.uptime() * 1000) / 1000;
  // What is recorded is the time between two looks.
  const seconds = (ns: number) => Math.max(0, ns - RESOLUTION_MS * 1e6) / NS_PER_S;
  return {
    read() {
      const loop = {
        name: "relay_event_loop_delay_seconds",
        help: "How late the event loop came to its timers since the last scrape; of several processes the worst.",
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
    gaugeOf({ name: "relay_processes", help: "Processes that serve and have answered." }, 1),
    countOf({ name: "process_cpu_seconds_total", help: "CPU time, user and system." }, (user + system) / 1e6),
    gaugeOf({ name: "process_resident_memory_bytes", help: "Resident memory." }, rss),
    gaugeOf({ name: "nodejs_heap_size_used_bytes", help: "Used part of V8's heap." }, heapUsed),
    gaugeOf({ name: "nodejs_external_memory_bytes", help: "Memory of buffers outside of V8's heap." }, external),
    gaugeOf(
      {
        name: "process_start_time_seconds",
        help: "When the oldest process started, seconds since the epoch.",
        aggregator: "min",
      },
      startedAt,
    ),
  ];
}
