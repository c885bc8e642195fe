import type { Logger } from "pino";
import { type CallSink, createCallRecorder } from "../call/trace.js";
import type { Config } from "../config/config.js";
import { type Capturing, createCapturing } from "../records/call-capture.js";
import { createCaptureWriter } from "../records/capture-store.js";
import { createRecordWriter, type RecordWriter } from "../records/record-writer.js";
import { startRetention } from "../records/retention.js";
import type { Sealer } from "../sealing/seal.js";
import type { Store } from "../store/store.js";
import { describeError } from "../telemetry/log.js";

/** What recording calls needs. */
export interface RecordCallsOptions {
  readonly config: Pick<Config, "callRecords" | "callRecordsPerApplication" | "callRecordsDays">;
  readonly store: Pick<Store, "calls" | "captures">;
  readonly sealer: Sealer;
  readonly logger: Logger;
  readonly onFault: (where: string, error: unknown) => void;
}

/** Calls are being recorded. */
export interface CallRecording {
  /** Undefined when records are switched off; what was recorded before is forgotten by age all the same. */
  readonly sink: CallSink | undefined;
  readonly capturing: Capturing | undefined;
  readonly records: Pick<RecordWriter, "dropped"> | undefined;
  /** Writes what waits, for some seconds at most. */
  close(): Promise<void>;
}

/** Begins to record calls beside serving them, and to forget records that are too old. */
export function recordCalls({ config, store, sealer, logger, onFault }: RecordCallsOptions): CallRecording {
  const retention = startRetention({
    calls: store.calls,
    captures: store.captures,
    days: config.callRecordsDays,
    now: Date.now,
    onFault: (error) => onFault("call records", error),
  });
  if (config.callRecords === "off") {
    return { sink: undefined, capturing: undefined, records: undefined, close: async () => retention.close() };
  }
  const records = createRecordWriter({
    calls: store.calls,
    maxCalls: config.callRecordsPerApplication,
    onDropped: (dropped, cause) => logger.warn({ dropped, ...problemOf(cause) }, "call records dropped"),
  });
  const captures = createCaptureWriter({
    captures: store.captures,
    sealer,
    now: Date.now,
    onFault: (error) => onFault("call captures", error),
  });
  return {
    sink: createCallRecorder({ records, captures, now: Date.now }),
    capturing: createCapturing(Date.now),
    records,
    async close() {
      retention.close();
      await Promise.all([records.close(), captures.close()]);
    },
  };
}

/** Undefined when there was no error, but too much to do. */
function problemOf(cause: unknown) {
  return cause === undefined ? {} : describeError(cause);
}
