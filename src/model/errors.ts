/**
 * The one table of failure reasons: errorType on the wire → statusCode of the row.
 * docs/calling.md and the comments of relay.proto repeat it for readers; a test holds the three together.
 */
export const REASONS = {
  CALL_FORMAT_ERROR: 400,
  INVALID_PUBLIC_KEY: 401,
  CALLER_NOT_ALLOWED: 403,
  INVALID_PROVIDER: 404,
  URL_NOT_ALLOWED: 403,
  CALL_NOT_PERMITTED: 403,
  INVALID_OAUTHID: 401,
  REAUTHORIZATION_REQUIRED: 401,
  PROVIDER_UNREACHABLE: 502,
  PROVIDER_TIMEOUT: 504,
  PROVIDER_RESPONSE_INVALID: 502,
  RESPONSE_TOO_LARGE: 502,
  REQUEST_TOO_LARGE: 413,
  RATE_LIMITED: 429,
  REFRESH_UNAVAILABLE: 503,
  PROVIDER_MISCONFIGURED: 500,
  STORE_UNAVAILABLE: 503,
  OVERLOADED: 503,
  INTERNAL_ERROR: 500,
} as const;

/** Why a call failed inside the relay; the value on the wire is the same text. */
export type Reason = keyof typeof REASONS;

/** errorType of a row: one of {@link REASONS}, or API_ERROR for a provider's answer with status 400 or above. */
export type ErrorType = Reason | "API_ERROR";

/** Error for a malformed call; the message names the field. */
export function formatError(message: string): RelayError {
  return new RelayError("CALL_FORMAT_ERROR", message);
}

/** Error for a caller over a limit, which `what` names. */
export function rateLimited(what: string, waitSeconds: number): RelayError {
  return new RelayError("RATE_LIMITED", `${what} Try again in ${waitSeconds} s.`, { waitSeconds });
}

/** Error for a request that there is no capacity for. */
export function overloaded(): RelayError {
  return new RelayError("OVERLOADED", "The relay is overloaded right now. Try again in a moment.");
}

/**
 * The only error the relay answers with.
 *
 * `message` is sent to the caller: one sentence that says what happened and what to do. It never holds a token, a
 * header value, a stack, an internal name or provider text. `cause` is only for the log, which has its class and code;
 * it is never printed whole.
 */
export class RelayError extends Error {
  readonly reason: Reason;
  /** When to try again, for `Retry-After`; undefined when that is not known. */
  readonly waitSeconds: number | undefined;

  constructor(reason: Reason, message: string, options?: { cause?: unknown; waitSeconds?: number }) {
    super(message, options);
    this.name = "RelayError";
    this.reason = reason;
    this.waitSeconds = options?.waitSeconds;
  }

  /** The row's statusCode for this reason. */
  get statusCode(): number {
    return REASONS[this.reason];
  }
}

/** STORE_UNAVAILABLE for a write that may or may not have been done (threats A06). */
export class UnconfirmedWriteError extends RelayError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("STORE_UNAVAILABLE", message, options);
  }
}

/** Whether the store refused temporarily; any other error would recur on a retry. */
export function isRefusedByStore(error: unknown): boolean {
  return error instanceof RelayError && error.reason === "STORE_UNAVAILABLE";
}

/** Error for a deadline that passed during the relay's own work. */
export function lateWork(): RelayError {
  const what = "The deadline passed while the relay was working on this large call";
  return new RelayError(
    "PROVIDER_TIMEOUT",
    `${what}; if the call changes something, check whether it was done before sending it again.`,
  );
}
