import { type Reason, RelayError } from "../model/errors.js";
import { errors } from "./undici.js";

/** How far a request got; decides what a broken connection means. */
export type Progress =
  /** In the queue; nothing was sent. */
  | "waiting"
  /** Has a socket, perhaps not connected yet; nothing was sent. */
  | "dialling"
  /** Written, at least in part; no byte of the answer arrived. */
  | "sent"
  /** The first byte of the answer arrived. */
  | "answering";

/** A failure of this folder; the key of its message. */
export type Failure = keyof typeof FAILURES;

const MAY_HAVE_ACTED = "it may have acted on the request, so check before sending it again";

/** Every failure of this folder, with its reason and its message to the caller. */
const FAILURES = {
  name: [
    "PROVIDER_UNREACHABLE",
    "The provider's host name could not be resolved; check the provider's origin and the relay's DNS.",
  ],
  address: [
    "PROVIDER_UNREACHABLE",
    "The provider's host resolves to an address that is not allowed; a provider in a private network needs allowPrivateNetwork in its definition.",
  ],
  connect: [
    "PROVIDER_UNREACHABLE",
    "No connection to the provider could be made; check that it is up and can be reached from the relay.",
  ],
  tls: [
    "PROVIDER_UNREACHABLE",
    "No secure connection to the provider could be made; check its certificate, its name and that it speaks TLS 1.2 or newer.",
  ],
  reset: ["PROVIDER_UNREACHABLE", `The provider closed the connection without answering; ${MAY_HAVE_ACTED}.`],
  closed: ["PROVIDER_UNREACHABLE", "The relay is stopping and did not call the provider; send the call again."],
  noTurn: [
    "PROVIDER_TIMEOUT",
    "No connection to the provider was ready before the deadline; send the call again later.",
  ],
  noAnswer: ["PROVIDER_TIMEOUT", `The provider did not finish its answer before the deadline; ${MAY_HAVE_ACTED}.`],
  protocol: ["PROVIDER_RESPONSE_INVALID", `The provider's answer is not valid HTTP; ${MAY_HAVE_ACTED}.`],
  cutShort: ["PROVIDER_RESPONSE_INVALID", `The provider's answer ended early or is not valid HTTP; ${MAY_HAVE_ACTED}.`],
  fields: [
    "PROVIDER_RESPONSE_INVALID",
    `The provider's answer has more header fields than the relay accepts; ${MAY_HAVE_ACTED}.`,
  ],
  interim: ["PROVIDER_RESPONSE_INVALID", `The provider sent too many interim answers; ${MAY_HAVE_ACTED}.`],
  coding: [
    "PROVIDER_RESPONSE_INVALID",
    "The provider's answer has an encoding that the relay cannot decode, although none was requested; call another of its URLs.",
  ],
  corrupt: [
    "PROVIDER_RESPONSE_INVALID",
    "The provider's answer cannot be decoded with the encoding it names; call again, or another of its URLs.",
  ],
  tooLarge: [
    "RESPONSE_TOO_LARGE",
    "The provider's answer is larger than the relay accepts; ask for fewer items or raise RELAY_MAX_RESPONSE_BYTES.",
  ],
  crowded: [
    "OVERLOADED",
    "Too many calls are waiting for this provider, and this one was not sent; send the call again in a moment.",
  ],
  streams: [
    "OVERLOADED",
    "Too many streams to this provider are open, and this one was not started; end one of them, or try again in a moment.",
  ],
  silent: ["PROVIDER_TIMEOUT", "The provider stopped sending in the middle of its answer; the rest is missing."],
  expansion: [
    "RESPONSE_TOO_LARGE",
    "The provider's answer becomes more than 100 times as large when it is decoded; request it without an encoding.",
  ],
  noMemory: ["OVERLOADED", `The relay is holding too many large answers right now; ${MAY_HAVE_ACTED}.`],
  request: ["INTERNAL_ERROR", "The request could not be written as HTTP; report this as a fault of the relay."],
} as const satisfies Record<string, readonly [Reason, string]>;

/** The address is forbidden by the policy or is the relay's own; `rule` says why. */
export class AddressRefusedError extends Error {
  readonly code = "ADDRESS_REFUSED";
  readonly rule: string;

  constructor(rule: string) {
    super(`address refused by rule ${rule}`);
    this.name = "AddressRefusedError";
    this.rule = rule;
  }
}

/** Creates the error of a failure. The message is fixed; `cause` is for the log. */
export function relayError(failure: Failure, cause?: unknown): RelayError {
  const [reason, message] = FAILURES[failure];
  return new RelayError(reason, message, { cause });
}

/** The error for a deadline that passes at this point of the request. */
export function deadlineError(progress: Progress): RelayError {
  return relayError(progress === "waiting" || progress === "dialling" ? "noTurn" : "noAnswer");
}

/** Translates an error of undici or Node.js, by its class and code, never by its text. */
export function relayErrorFrom(error: unknown, progress: Progress): RelayError {
  return error instanceof RelayError ? error : relayError(failureOf(error, progress), error);
}

/** Whether the error of a request that was written means that the connection ended before the answer began. */
export function isSilentEnd(error: unknown): boolean {
  return failureOf(error, "sent") === "reset";
}

function failureOf(error: unknown, progress: Progress): Failure {
  if (error instanceof AddressRefusedError) return "address";
  if (error instanceof errors.HTTPParserError) return "protocol";
  if (error instanceof errors.HeadersOverflowError) return "fields";
  if (error instanceof errors.ResponseContentLengthMismatchError) return "cutShort";
  if (isRefusedRequest(error)) return "request";
  if (progress === "answering") return "cutShort";
  if (progress === "sent") return "reset";
  return isTls(codeOf(error)) ? "tls" : "connect";
}

/** Whether undici rejected the request itself. */
function isRefusedRequest(error: unknown): boolean {
  return (
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.NotSupportedError ||
    error instanceof errors.RequestContentLengthMismatchError
  );
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/**
 * Whether a code is one of OpenSSL's verification or protocol errors; connect errors of the system have other codes.
 */
function isTls(code: string): boolean {
  return code === "EPROTO" || /^ERR_(?:TLS|SSL)_|CERT|^UNABLE_TO_|CRL|^INVALID_(?:CA|PURPOSE)$|^HOSTNAME_/.test(code);
}
