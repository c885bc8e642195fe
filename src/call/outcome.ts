import type { Bytes } from "../lib/chunks.js";
import type { CallerSignal } from "../model/caller-signal.js";
import { type ErrorType, RelayError } from "../model/errors.js";
import type { Call } from "./call.js";

/** The provider's body, mapped for a row. */
export type AnswerData =
  /** One valid JSON value: the provider's own bytes (UTF-8), never parsed and printed again. */
  | { readonly kind: "json"; readonly text: Bytes }
  /** Text, decoded by its charset. */
  | { readonly kind: "text"; readonly text: string }
  /** Text that is too long to be one string: in UTF-8, without a byte order mark. */
  | { readonly kind: "utf8"; readonly bytes: Bytes }
  /** Anything else; sent as base64. */
  | { readonly kind: "binary"; readonly bytes: Bytes }
  /** The decoded bytes themselves, for a caller that asked for `body`. */
  | { readonly kind: "body"; readonly bytes: Bytes }
  /** An empty body: `{}` in a row. */
  | { readonly kind: "empty" };

/** Status and fields of what the provider answered, filtered and redacted. */
export interface AnswerHead {
  readonly statusCode: number;
  /** Whether the body had no length and ended with the connection, so that nobody knows whether it is whole. */
  readonly isPossiblyTruncated?: boolean | undefined;
  /** Media type without parameters, lower-case; empty when the provider named none. */
  readonly contentType: string;
  /** Names as received, repeated fields joined with `, `. Values are text in an answer, and bytes (latin1) in a stream's head. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
}

/** What the provider answered, ready to leave: decoded, filtered and redacted. */
export interface Answer extends AnswerHead {
  readonly data: AnswerData;
}

/** How one call ended. A row has exactly these members (design: the envelope). */
export type Outcome = { readonly result: "success"; readonly callId: string; readonly answer: Answer } | ErrorOutcome;

/** How a call ended that did not succeed. */
export interface ErrorOutcome {
  readonly result: "error";
  readonly callId: string;
  readonly errorType: ErrorType;
  readonly statusCode: number;
  /** One sentence for a human: `inernalError` on the wire. */
  readonly message: string;
  /** Only when the provider answered (API_ERROR). */
  readonly answer: Answer | undefined;
}

/** A provider answer below 400 is a success; 400 and above is the provider's own error, with all it said. */
export function outcomeFromAnswer(callId: string, answer: Answer): Outcome {
  const { statusCode } = answer;
  if (statusCode < 400) return { result: "success", callId, answer };
  const message = `The provider answered with status ${statusCode}. See data for what it said.`;
  return { result: "error", callId, errorType: "API_ERROR", statusCode, message, answer };
}

/** The outcome of a call that failed; when the caller is gone, that is why, whatever else it led to. */
export function outcomeFromFailure(
  { callId, signal }: Pick<Call, "callId" | "signal">,
  error: unknown,
  onFault: (where: string, error: unknown) => void,
): ErrorOutcome {
  if (isGone(signal)) return outcomeFromError(callId, callerGone(), onFault);
  // A call that had to give way ends in whatever way it was just then.
  return outcomeFromError(callId, signal?.aborted === true ? signal.reason : error, onFault);
}

/** Nobody reads this row; the log line tells the story. */
export function callerGone(): RelayError {
  return new RelayError("PROVIDER_TIMEOUT", "The caller ended the call before the provider answered.");
}

/** @param onFault called for what is no RelayError: a fault of ours, answered as INTERNAL_ERROR. */
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
    answer: undefined,
  };
}

/** Whether nobody waits for an answer any more. */
export function isGone(signal: Pick<CallerSignal, "aborted" | "reason"> | undefined): boolean {
  return signal?.aborted === true && !(signal.reason instanceof RelayError);
}

/** The status code of an outcome's row. */
export function statusCodeOf(outcome: Outcome): number {
  return outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode;
}
