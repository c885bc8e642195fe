import { createCallTimes } from "../model/call-id.js";
import type { ResponseToCapture } from "../records/call-capture.js";
import type { CaptureWriter } from "../records/capture-store.js";
import type { RecordWriter } from "../records/record-writer.js";
import { describeTarget, type StoredCall } from "../records/stored-call.js";
import type { CallRecord } from "../telemetry/call-log.js";
import type { Answer, AnswerData, Outcome } from "./outcome.js";
import type { CallSink, CallTrace } from "./trace.js";

/** Where records and captures go. */
export interface RecordingOptions {
  readonly records: Pick<RecordWriter, "add">;
  readonly captures: Pick<CaptureWriter, "add">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Records every call whose application is known. */
export function createCallRecorder({ records, captures, now }: RecordingOptions): CallSink {
  const timeOf = createCallTimes();
  return (told, trace, outcome) => {
    const { applicationId, callId } = told;
    if (applicationId === undefined) return;
    const startedAt = timeOf(callId) ?? Math.round(now() - told.totalMs);
    records.add(storedCallFrom(told, applicationId, trace, startedAt));
    if (trace.capture === undefined) return;
    const content = trace.capture.content(endFrom(outcome));
    captures.add({ callId, applicationId, captureUntil: trace.capture.captureUntil, content });
  };
}

function storedCallFrom(told: CallRecord, applicationId: string, trace: CallTrace, startedAt: number): StoredCall {
  const { egress, checked, queueMs } = trace;
  const target = egress && describeTarget(egress.path, checked?.query ?? []);
  return {
    callId: told.callId,
    applicationId,
    startedAt,
    surface: told.surface,
    provider: told.provider,
    method: checked?.method,
    origin: egress?.origin,
    path: target?.path,
    queryKeys: target?.queryKeys ?? [],
    status: told.status,
    errorType: told.errorType,
    rule: told.rule,
    cause: told.cause,
    totalMs: told.totalMs,
    tokenMs: trace.tokenMs,
    queueMs,
    providerMs: told.providerMs && providerMsFrom(told, told.providerMs, queueMs ?? 0),
    requestBytes: told.requestBytes,
    responseBytes: told.responseBytes,
    isCaptured: trace.capture !== undefined,
  };
}

/**
 * The wait for a turn, which is counted from when the request was handed to the queue, is no part of it. The body of a
 * stream is: from the head on the relay hands on what comes, as fast as the provider sends and the caller reads.
 */
function providerMsFrom({ totalMs, headMs = totalMs }: CallRecord, providerMs: number, queueMs: number): number {
  return providerMs - queueMs + totalMs - headMs;
}

function endFrom(outcome: Outcome) {
  const message = outcome.result === "error" ? outcome.message : undefined;
  return { response: outcome.answer && responseFrom(outcome.answer), message };
}

function responseFrom({ statusCode, headers, data }: Answer): ResponseToCapture {
  return { statusCode, headers, body: bytesOf(data) };
}

function bytesOf(data: AnswerData): Uint8Array {
  switch (data.kind) {
    case "empty":
      return new Uint8Array();
    case "text":
      return Buffer.from(data.text);
    case "json":
      return data.text.concat();
    case "utf8":
    case "binary":
    case "body":
      return data.bytes.concat();
  }
}
