import cluster from "node:cluster";
import type { Metric } from "../telemetry/metric.js";
import { isMetricsAsked, isMetricsSum, type MetricsMessage, type MetricsWantedMessage } from "./messages.js";

/** The metrics of all processes of one service. */
export interface MetricsOfAll {
  /** Rejects when they cannot be had: sums over a part of the processes would go back and forth. */
  read(): Promise<readonly Metric[]>;
  /** Leaves what was counted here to the processes that go on. */
  close(): Promise<void>;
}

/** The supervisor itself waits for silent workers, and less long, in milliseconds. */
const WAIT_MS = 3000;

/** @param readOwn how this process's own metrics stand. A process that is alone is the whole service. */
export function metricsOverWorkers(readOwn: () => readonly Metric[]): MetricsOfAll {
  if (!cluster.isWorker) return { read: async () => readOwn(), close: async () => {} };
  const sendOwn = (isLast: boolean) => send({ type: "metrics", metrics: readOwn(), isLast });
  const onMessage = (message: unknown) => {
    if (isMetricsAsked(message)) void sendOwn(false);
  };
  process.on("message", onMessage);
  let lastId = 0;
  let reading: Promise<readonly Metric[]> | undefined;
  return {
    read() {
      lastId += 1;
      reading ??= askSupervisor(lastId).finally(() => {
        reading = undefined;
      });
      return reading;
    },
    async close() {
      process.off("message", onMessage);
      await sendOwn(true);
    },
  };
}

function askSupervisor(id: number): Promise<readonly Metric[]> {
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer);
      process.off("message", onMessage);
    };
    const onMessage = (message: unknown) => {
      if (!isMetricsSum(message) || message.id !== id) return;
      settle();
      resolve(message.metrics);
    };
    const timer = setTimeout(() => {
      settle();
      reject(new Error("the supervisor does not answer"));
    }, WAIT_MS);
    process.on("message", onMessage);
    void send({ type: "metricsWanted", id });
  });
}

/** Resolves when it is written; a supervisor that is gone is told nothing. */
function send(message: MetricsMessage | MetricsWantedMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}
