import type { Worker } from "node:cluster";
import { setTimeout as delay } from "node:timers/promises";
import type { Metric } from "../telemetry/metric.js";
import { sumOf } from "../telemetry/metrics.js";
import { isMetrics, isMetricsWanted, type MetricsAskedMessage, type MetricsSumMessage } from "./messages.js";

/** Adds up the metrics of all workers for whichever of them is asked. */
export interface WorkerMetrics {
  /** Counts a worker from now on; what it has counted is kept when it ends. */
  add(worker: Worker): void;
}

/** A worker answers in a few milliseconds unless its event loop is held; then what it said last counts. */
const WAIT_MS = 1000;

/** Nothing counted yet. A sum never goes back: it is of what each worker said last, those that have ended included. */
export function createWorkerMetrics(): WorkerMetrics {
  const latest = new Map<Worker, readonly Metric[]>();
  const asked = new Map<Worker, () => void>();
  let ended: readonly Metric[] = [];
  let lastKept = Promise.resolve();
  let gathering: Promise<readonly Metric[]> | undefined;

  async function gather(): Promise<readonly Metric[]> {
    const answers = [...latest.keys()].map((worker) => ask(worker, asked));
    const waiting = new AbortController();
    await Promise.race([Promise.all(answers), delay(WAIT_MS, undefined, { signal: waiting.signal }).catch(() => {})]);
    waiting.abort();
    return sumOf([ended, ...latest.values()]);
  }

  function onMessage(worker: Worker, message: unknown): void {
    if (isMetrics(message)) {
      latest.set(worker, message.metrics);
      asked.get(worker)?.();
      if (message.isLast) keep(worker);
    } else if (isMetricsWanted(message)) {
      gathering ??= gather().finally(() => {
        gathering = undefined;
      });
      void gathering.then((metrics) => send(worker, { type: "metricsSum", id: message.id, metrics }));
    }
  }

  /** Gauges end with their process. One worker after the other, since each adds to the same sum. */
  function keep(worker: Worker): void {
    asked.get(worker)?.();
    lastKept = lastKept.then(async () => {
      const last = latest.get(worker);
      if (last === undefined) return;
      ended = (await sumOf([ended, last])).filter(({ type }) => type !== "gauge");
      latest.delete(worker);
    });
  }

  return {
    add(worker) {
      latest.set(worker, []);
      worker.on("message", (message: unknown) => onMessage(worker, message));
      // For one that had no last word. It may come after 'exit'; after this nothing does.
      worker.process.once("close", () => keep(worker));
    },
  };
}

/** Resolves when the worker has answered, or cannot any more. */
function ask(worker: Worker, asked: Map<Worker, () => void>): Promise<void> {
  return new Promise((resolve) => {
    asked.set(worker, resolve);
    if (!send(worker, { type: "metricsAsked" })) resolve();
  });
}

/** False when the worker is gone. */
function send(worker: Worker, message: MetricsAskedMessage | MetricsSumMessage): boolean {
  if (!worker.isConnected()) return false;
  worker.send(message);
  return true;
}
