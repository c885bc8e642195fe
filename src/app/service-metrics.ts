import type { Logger } from "pino";
import type { Budget } from "../call/budget.js";
import { type CallSink, createCallRecorder } from "../call/trace.js";
import type { Config } from "../config/config.js";
import type { Listener } from "../http/listener.js";
import { packageVersion } from "../lib/process.js";
import { type Capturing, createCapturing } from "../records/call-capture.js";
import { createCaptureWriter } from "../records/capture-store.js";
import { createFigureWriter } from "../records/figures.js";
import { RecordWriter } from "../records/record-writer.js";
import { startRetention } from "../records/retention.js";
import type { Sealer } from "../sealing/seal.js";
import type { Store } from "../store/store.js";
import type { StoreHealth } from "../store/store-health.js";
import { describeError } from "../telemetry/log.js";
import { countOf, countsOf, gaugeOf, gaugesOf, type Metric } from "../telemetry/metric.js";
import { METRICS } from "../telemetry/metric-list.js";
import { createMetrics, type Metrics } from "../telemetry/metrics.js";
import { metricsOverWorkers } from "../workers/worker.js";

/** The metrics of this process, and those of all processes of its service. */
export interface ServiceMetrics extends Metrics {
  /** Metrics of all processes. Rejects when one cannot be reached. */
  readAll(): Promise<readonly Metric[]>;
}

/** Undefined when metrics are switched off. Adds what has to be closed later to `closers`. */
export function createServiceMetrics(
  { metrics }: Pick<Config, "metrics">,
  closers: Array<() => Promise<void> | void>,
): ServiceMetrics | undefined {
  if (metrics === "off") return undefined;
  const own = createMetrics(packageVersion());
  const all = metricsOverWorkers(own.read);
  closers.push(own.close, all.close);
  return { ...own, readAll: all.read };
}

/** Current use of calls and buffers, with their limits. Values of several processes are summed. */
export function budgetMetrics(
  budget: Budget,
  limits: Pick<Config, "maxInFlight" | "maxBufferedBytes">,
): readonly Metric[] {
  const { inFlight, bytes, reading } = budget.refusals;
  const refusals = { in_flight: inFlight, bytes, reading };
  return [
    gaugeOf(METRICS.callsInFlight, budget.inFlight),
    gaugeOf(METRICS.maxCallsInFlight, limits.maxInFlight),
    gaugeOf(METRICS.bufferedBytes, budget.bufferedBytes),
    gaugeOf(METRICS.maxBufferedBytes, limits.maxBufferedBytes),
    countsOf(
      METRICS.rejected,
      Object.entries(refusals).map(([reason, value]) => ({ labels: { reason }, value })),
    ),
  ];
}

/** Results of the last store checks. For several processes, the worst. */
export function healthMetrics({ problems }: StoreHealth): readonly Metric[] {
  const values = [...problems].map(([check, problem]) => ({ labels: { check }, value: problem === undefined ? 1 : 0 }));
  return [gaugesOf(METRICS.storeCheckOk, values)];
}

/** Open and refused TCP connections of clients. */
export function listenerMetrics({ connections: { open, refused } }: Listener): readonly Metric[] {
  return [gaugeOf(METRICS.clientConnections, open), countOf(METRICS.clientConnectionsRefused, refused)];
}

/** Options of {@link recordCalls}. */
interface RecordCallsOptions {
  readonly config: Pick<Config, "callRecords" | "callRecordsPerApplication" | "callRecordsDays">;
  readonly store: Pick<Store, "calls" | "captures" | "webhooks" | "figures" | "clock">;
  readonly sealer: Sealer;
  readonly logger: Logger;
  readonly onFault: (where: string, error: unknown) => void;
}

/** The running recording of calls. */
export interface CallRecording {
  /** Undefined when records are switched off. Earlier records are still deleted by age. */
  readonly sink: CallSink | undefined;
  readonly capturing: Capturing | undefined;
  readonly records: Pick<RecordWriter, "dropped"> | undefined;
  /** Writes what is queued, for some seconds at most. */
  close(): Promise<void>;
}

/** Starts to record calls in the background, and to delete records that are too old. */
export function recordCalls({ config, store, sealer, logger, onFault }: RecordCallsOptions): CallRecording {
  const retention = startRetention({
    calls: store.calls,
    captures: store.captures,
    webhooks: store.webhooks,
    figures: store.figures,
    clock: store.clock,
    days: config.callRecordsDays,
    now: Date.now,
    onFault: (error) => onFault("call records", error),
  });
  if (config.callRecords === "off") {
    return { sink: undefined, capturing: undefined, records: undefined, close: async () => retention.close() };
  }
  const records = new RecordWriter({
    calls: store.calls,
    sealer,
    maxCalls: config.callRecordsPerApplication,
    onDropped: (dropped, cause) => logger.warn({ dropped, ...problemOf(cause) }, "call records dropped"),
  });
  const captures = createCaptureWriter({
    captures: store.captures,
    sealer,
    now: Date.now,
    onFault: (error) => onFault("call captures", error),
  });
  const figures = createFigureWriter({
    store: store.figures,
    now: Date.now,
    onFault: (error) => onFault("call figures", error),
  });
  return {
    sink: createCallRecorder({ records, captures, figures, now: Date.now }),
    capturing: createCapturing(Date.now),
    records,
    async close() {
      retention.close();
      await Promise.all([records.close(), captures.close(), figures.close()]);
    },
  };
}

/** Log fields of the cause; empty when calls were dropped for lack of room, without an error. */
function problemOf(cause: unknown) {
  return cause === undefined ? {} : describeError(cause);
}
