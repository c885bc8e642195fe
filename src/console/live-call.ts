import type { CallRecordJson } from "../../gen/relay/admin/v1/call_record_pb.js";

/** One call that has ended, and where its time went. */
export interface LiveCall {
  readonly record: CallRecordJson;
  /** Milliseconds of the whole call. */
  readonly totalMs: number;
  /** Of them, the wait for the provider. */
  readonly providerMs: number;
  /** Of them, the waits for a token and for a turn. */
  readonly waitMs: number;
  /** What is left: the relay's own time. */
  readonly relayMs: number;
}

/** Pure. */
export function liveCallFrom(record: CallRecordJson): LiveCall {
  const totalMs = msFrom(record.totalDuration);
  const providerMs = msFrom(record.providerDuration);
  const waitMs = msFrom(record.tokenDuration) + msFrom(record.queueDuration);
  return { record, totalMs, providerMs, waitMs, relayMs: Math.max(0, totalMs - providerMs - waitMs) };
}

/** ProtoJSON of google.protobuf.Duration, such as `0.0125s`. */
function msFrom(duration: string | undefined): number {
  return duration === undefined ? 0 : Number.parseFloat(duration) * 1000;
}
