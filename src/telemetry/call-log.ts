import type { Logger } from "pino";

/** The one log line of a call: an allow-list of names and numbers, never a value that a caller or a provider chose. */
export interface CallRecord {
  readonly callId: string;
  readonly surface: string;
  /** The application's id; undefined when the public key names none. */
  readonly applicationId: string | undefined;
  /** The provider's name; undefined when there is no such provider. */
  readonly provider: string | undefined;
  /** The HTTP method sent, or undefined when the call got no further than its format. */
  readonly method: string | undefined;
  /** The provider origin the call went to. */
  readonly origin: string | undefined;
  readonly status: number;
  readonly errorType: string | undefined;
  /** The rule that allowed the url, or that refused url or caller. */
  readonly rule: string | undefined;
  /** Code or class of the error behind a failure, such as ECONNREFUSED. */
  readonly cause: string | undefined;
  /** Milliseconds: the whole call, and the part of it spent waiting for the provider. */
  readonly totalMs: number;
  readonly providerMs: number | undefined;
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** Writes the line of one call. */
export type CallLog = (record: CallRecord) => void;

/** One `call` line per call at level info; costs a comparison when the level is off. */
export function createCallLog(logger: Logger): CallLog {
  return (record) => {
    if (!logger.isLevelEnabled("info")) return;
    logger.info({ ...record, totalMs: rounded(record.totalMs), providerMs: rounded(record.providerMs) }, "call");
  };
}

function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 10) / 10;
}
