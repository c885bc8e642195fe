import type { Bytes } from "../lib/chunks.js";
import type { CallerSignal } from "../model/caller-signal.js";
import { type ErrorType, RelayError } from "../model/errors.js";
import type { Call } from "./call.js";

/** The provider's body, as a row holds it. */
export type AnswerData =
  /** One valid JSON value: the provider's own bytes (UTF-8), never parsed and serialized again. */
  | { readonly kind: "json"; readonly text: Bytes }
  /** Text, decoded from its charset. */
  | { readonly kind: "text"; readonly text: string }
  /** Text too long for a single string: in UTF-8, without a byte order mark. */
  | { readonly kind: "utf8"; readonly bytes: Bytes }
  /** Anything else; sent as base64. */
  | { readonly kind: "binary"; readonly bytes: Bytes }
  /** The body with its content-encoding undone, for a caller that asked for `body`. */
  | { readonly kind: "body"; readonly bytes: Bytes }
  /** An empty body: `{}` in a row. */
  | { readonly kind: "empty" };

/** Status and fields of the provider's answer, filtered and redacted. */
export interface AnswerHead {
  readonly statusCode: number;
  /** Whether the body had no length and ended with the connection, so that it may be incomplete. */
  readonly isPossiblyTruncated?: boolean | undefined;
  /** Media type without parameters, lower-case; empty when the provider named none. */
  readonly contentType: string;
  /**
   * Names as received, repeated fields joined with `, `. Values are text in an answer, latin1 bytes in a stream's head.
   */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
}

/** The provider's answer, ready to return: decoded, filtered and redacted. */
export interface Answer extends AnswerHead {
  readonly data: AnswerData;
}

/** How one call ended. A row has exactly these members (design: the envelope). */
export type Outcome = { readonly result: "success"; readonly callId: string; readonly answer: Answer } | ErrorOutcome;

/** How a failed call ended. */
export interface ErrorOutcome {
  readonly result: "error";
  readonly callId: string;
  readonly errorType: ErrorType;
  readonly statusCode: number;
  /** One sentence for a human: `inernalError` on the wire. */
  readonly message: string;
  /** See `RelayError`. */
  readonly waitSeconds?: number | undefined;
  /** Defined only when the provider answered (API_ERROR). */
  readonly answer: Answer | undefined;
}

/** The status code of an outcome's row. */
export function statusCodeOf(outcome: Outcome): number {
  return outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode;
}

/**
 * A provider status below 400 is a success; 400 and above is the provider's own error, returned with its whole answer.
 */
export function outcomeFromAnswer(callId: string, answer: Answer): Outcome {
  const { statusCode } = answer;
  if (statusCode < 400) return { result: "success", callId, answer };
  const message = `The provider answered with status ${statusCode}. See data for what it said.`;
  return { result: "error", callId, errorType: "API_ERROR", statusCode, message, answer };
}

/**
 * The outcome of a failed call. If the caller has disconnected, that is the reason, whatever error followed from it.
 */
export function outcomeFromFailure(
  { callId, signal }: Pick<Call, "callId" | "signal">,
  error: unknown,
  onFault: (where: string, error: unknown) => void,
): ErrorOutcome {
  if (isGone(signal)) return outcomeFromError(callId, callerGone(), onFault);
  // An evicted call fails with whatever error its current step raises; the eviction is the reason.
  return outcomeFromError(callId, signal?.aborted === true ? signal.reason : error, onFault);
}

/** The caller has disconnected. Nobody reads the row; as a 4xx it is not counted against the provider. */
class CallerGoneError extends RelayError {
  override get statusCode(): number {
    return 499;
  }
}

/** The error of a call whose caller has disconnected: only its log line, record and metrics show it. */
export function callerGone(): RelayError {
  return new CallerGoneError("PROVIDER_TIMEOUT", "The caller ended the call before the provider answered.");
}

/** @param onFault called for an error other than a RelayError: a fault of the relay, answered as INTERNAL_ERROR. */
export function outcomeFromError(
  callId: string,
  error: unknown,
  onFault: (where: string, error: unknown) => void,
): ErrorOutcome {
  if (!(error instanceof RelayError)) onFault("call", error);
  const known =
    error instanceof RelayError
      ? error
      : new RelayError("INTERNAL_ERROR", "The relay failed. Try again, and give the operator this call's callId.");
  return {
    result: "error",
    callId,
    errorType: known.reason,
    statusCode: known.statusCode,
    message: known.message,
    waitSeconds: known.waitSeconds,
    answer: undefined,
  };
}

/** Whether the caller has disconnected; false for a call aborted with a RelayError, such as an evicted one. */
export function isGone(signal: Pick<CallerSignal, "aborted" | "reason"> | undefined): boolean {
  return signal?.aborted === true && !(signal.reason instanceof RelayError);
}
