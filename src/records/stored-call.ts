/**
 * One call as it is kept. Names and numbers, and of what the caller wrote only where the call went: neither a value of
 * the query nor a header nor a body, and never a token.
 */
export interface StoredCall {
  readonly callId: string;
  readonly applicationId: string;
  /** When the request came in, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** How it came in: `rest`, `stream`, `connect`, `grpc`, `grpc-web`, `admin`. */
  readonly surface: string;
  /** The provider's name; undefined when there is no such provider. */
  readonly provider: string | undefined;
  /** The HTTP method; undefined when the call got no further than its format. */
  readonly method: string | undefined;
  /** Where the call went, or would have gone; undefined when the url was refused. */
  readonly origin: string | undefined;
  /** Without the query; 1,024 characters at most. */
  readonly path: string | undefined;
  /** Names of the query's parameters, without their values; 32 at most. */
  readonly queryKeys: readonly string[];
  readonly status: number;
  readonly errorType: string | undefined;
  /** The rule that allowed the url, or that refused url or caller. */
  readonly rule: string | undefined;
  /** Code or class of the error behind a failure, such as ECONNREFUSED. */
  readonly cause: string | undefined;
  /** Milliseconds: the whole call, and in it the waits for a token, for a place among the provider's calls, for the provider. */
  readonly totalMs: number;
  readonly tokenMs: number | undefined;
  readonly queueMs: number | undefined;
  readonly providerMs: number | undefined;
  /** Bytes of the bodies sent to the provider and handed to the caller. */
  readonly requestBytes: number;
  readonly responseBytes: number;
  /** Whether headers and bodies of it were captured. */
  readonly isCaptured: boolean;
}
