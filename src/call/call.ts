import type { CallerProof } from "../applications/caller.js";
import type { CallerSignal } from "../model/caller-signal.js";
import type { TraceContext } from "../telemetry/trace-context.js";
import type { Reservation } from "./budget.js";

/** How a call came in; a label for logs and metrics. `stream` is the raw route; `admin`: an operator performed it. */
export type Surface = "rest" | "stream" | "connect" | "grpc" | "grpc-web" | "admin";

/** Deepest nesting and most keys of a call's JSON (threats J01, J11): far beyond any API, far below what costs time. */
export const CALL_JSON_LIMITS = { maxDepth: 64, maxKeys: 10_000 } as const;

/** How the provider's body comes back: mapped to `data`, or the exact bytes. */
export type ResponseMode = "data" | "body";

/** The HTTP request a caller describes: well formed, not yet judged. */
export interface CallDescription {
  readonly url: string;
  readonly method: string;
  /** UTF-8 JSON text of an object, `{}` included, exactly as the caller wrote it; undefined for missing and null. */
  readonly payload: Uint8Array | undefined;
  /** In the order written; names as written. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** UTF-8 JSON text of a non-empty object; undefined for missing, null and `{}`. */
  readonly queryString: Uint8Array | undefined;
  /** Whether arrays of `payload` and `queryString` become one pair or part for each of their elements. */
  readonly explodeArrays: boolean;
  /** Exact bytes to send instead of a payload. */
  readonly body: Uint8Array | undefined;
}

/** What is known of a call before anything of it is read; enough for its log line and its row. */
export interface CallOrigin {
  readonly callId: string;
  /** As the caller named its request; the call id when it did not. */
  readonly requestId: string;
  /** The trace that the caller says the call belongs to. */
  readonly traceContext: TraceContext | undefined;
  readonly surface: Surface;
  /** When the request came in, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** As the caller wrote it: a name, an alias, or anything else. */
  readonly providerName: string;
}

/** One call as every protocol hands it to `relay()`. */
export interface Call extends CallOrigin {
  readonly publicKey: string;
  readonly userId: string;
  readonly proof: CallerProof;
  readonly description: CallDescription;
  readonly responseMode: ResponseMode;
  /** The call's share of the memory budget. */
  readonly memory: Reservation;
  /** Aborts when the caller is gone. */
  readonly signal: CallerSignal | undefined;
  /** When the call must have ended, in milliseconds of `performance.now()`. */
  readonly deadline: number;
}
