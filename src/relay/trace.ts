import type { CallLog } from "../telemetry/call-log.js";
import type { UpstreamRequest } from "../upstream/request.js";
import type { CallOrigin } from "./call.js";
import type { AnswerData, Outcome } from "./outcome.js";

/** What is learned of a call on its way; becomes its log line. */
export interface CallTrace {
  readonly origin: CallOrigin;
  applicationId: string | undefined;
  provider: string | undefined;
  /** Name of the egress rule that allowed or refused the url. */
  rule: string | undefined;
  /** Code or class of the error behind a failure. */
  cause: string | undefined;
  method: string | undefined;
  upstreamOrigin: string | undefined;
  requestBytes: number;
  providerMs: number | undefined;
  /** When the request that is under way was sent, in milliseconds of `performance.now()`. */
  sentAt: number;
}

/** Where the relay reports to. */
export interface RelayLog {
  call(trace: CallTrace, outcome: Outcome): void;
  /** A fault of ours, by place; described by class and code only. */
  fault(where: string, error: unknown): void;
}

/** Starts the trace of one call. */
export function createCallTrace(origin: CallOrigin): CallTrace {
  return {
    origin,
    applicationId: undefined,
    provider: undefined,
    rule: undefined,
    cause: undefined,
    method: undefined,
    upstreamOrigin: undefined,
    requestBytes: 0,
    providerMs: undefined,
    sentAt: 0,
  };
}

/** A request is sent to the provider. */
export function noteSent(trace: CallTrace, { method, origin, body }: UpstreamRequest): void {
  trace.method = method;
  trace.upstreamOrigin = origin;
  trace.requestBytes = body?.length ?? 0;
  trace.sentAt = performance.now();
}

/** The provider has answered, or has failed to; the time of a second request is added. */
export function noteAnswered(trace: CallTrace): void {
  trace.providerMs = (trace.providerMs ?? 0) + performance.now() - trace.sentAt;
}

/** Turns traces into log lines. */
export function createRelayLog(log: CallLog, fault: RelayLog["fault"]): RelayLog {
  return {
    fault,
    call: (trace, outcome) =>
      log({
        callId: trace.origin.callId,
        surface: trace.origin.surface,
        applicationId: trace.applicationId,
        provider: trace.provider,
        method: trace.method,
        origin: trace.upstreamOrigin,
        status: outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode,
        errorType: outcome.result === "error" ? outcome.errorType : undefined,
        rule: trace.rule,
        cause: trace.cause,
        totalMs: performance.now() - trace.origin.startedAt,
        providerMs: trace.providerMs,
        requestBytes: trace.requestBytes,
        responseBytes: sizeOf(outcome.answer?.data),
      }),
  };
}

function sizeOf(data: AnswerData | undefined): number {
  if (data === undefined || data.kind === "empty") return 0;
  return data.kind === "json" || data.kind === "text" ? data.text.length : data.bytes.length;
}
