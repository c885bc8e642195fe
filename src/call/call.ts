import type { CallerProof } from "../applications/caller.js";
import type { Steps } from "../lib/turns.js";
import type { CallerSignal } from "../model/caller-signal.js";
import { formatError } from "../model/errors.js";
import { decideHeaders } from "../providers/credential.js";
import type { TraceContext } from "../telemetry/call-spans.js";
import type { StreamedBody } from "../upstream/request.js";
import { type BodyInput, bodyFromCall } from "./body.js";
import type { Reservation } from "./budget.js";
import { queryFromJson } from "./urlencoded.js";

/** JSON text that goes to the query. */
const MAX_QUERY_BYTES = 32 * 1024;

/** What is sent, as far as the caller decides it. */
export interface CheckedCall {
  /** Real HTTP method, upper-case. */
  readonly method: string;
  /** Headers to forward, content-type of the body included. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: Uint8Array | undefined;
  /** To append to the url's query, in order. */
  readonly query: ReadonlyArray<readonly [name: string, value: string]>;
  /** GETFILE wants base64 whatever the type. */
  readonly answerAs: "auto" | "base64";
}

/**
 * Decides method, headers, body and query of the request, before anything secret is touched; in steps, since a body may
 * have to be written anew.
 *
 * Fails with CALL_FORMAT_ERROR that names the field.
 */
export function* checkCall(
  description: CallDescription,
  { newBoundary, memory }: Pick<BodyInput, "newBoundary" | "memory">,
): Steps<CheckedCall> {
  if (description.passed !== undefined) return checkPassed(description);
  const decided = decideHeaders(description.headers);
  const contentType = decided.forwarded.find(([name]) => name.toLowerCase() === "content-type");
  const body = yield* bodyFromCall({
    method: description.method,
    payload: payloadOf(description),
    explodeArrays: description.explodeArrays,
    body: description.body,
    contentType: contentType?.[1],
    payloadTypeFile: decided.payloadType === "file",
    newBoundary,
    memory,
  });
  const query =
    description.queryString === undefined
      ? []
      : queryFromJson(short(description.queryString, "queryString"), description.explodeArrays);
  return {
    method: body.method,
    headers: withContentType(decided.forwarded, body.contentType),
    body: body.body,
    query: body.query.length === 0 ? query : [...query, ...body.query],
    answerAs: body.answerAs,
  };
}

/** A token (RFC 9110 section 5.6.2); so long that every method in use fits. */
const METHOD = /^[\w!#$%&'*+.^`|~-]{1,64}$/;
/** A tunnel, an echo of the token, and no request at all; whatever the case, since some server may not mind it. */
const NEVER_SENT = /^(?:CONNECT|TRACE|PRI)$/i;

/** What is passed through is checked and not changed, but for the fields that are never a caller's to set. */
function checkPassed({ method, headers }: CallDescription): CheckedCall {
  if (!METHOD.test(method) || NEVER_SENT.test(method)) {
    throw formatError("method must be an HTTP token that is none of CONNECT, TRACE and PRI.");
  }
  return { method, headers: decideHeaders(headers).forwarded, body: undefined, query: [], answerAs: "auto" };
}

/**
 * A described request as one that is passed through, but for its body; to be explained.
 *
 * Throws CALL_FORMAT_ERROR for what only a described one has.
 */
export function asPassedThrough(description: CallDescription): CallDescription {
  const { url, payload, queryString, body } = description;
  if (payload !== undefined || queryString !== undefined || body !== undefined) {
    throw formatError("A request that is passed through is explained without payload, queryString and body.");
  }
  const tail = /^[a-z]+:\/\/[^/?#]*(.*)$/is.exec(url)?.[1] ?? "";
  const target = tail.startsWith("/") ? tail : `/${tail}`;
  return { ...description, passed: { target, body: undefined, requireProofOnce: () => {} } };
}

/** The payload of a request without a body becomes part of its query. */
function payloadOf({ method, payload }: CallDescription): Uint8Array | undefined {
  return payload !== undefined && /^(?:get|head|getfile)$/i.test(method) ? short(payload, "payload") : payload;
}

/** No server takes a longer request line, and encoding one would hold up other calls. */
function short(json: Uint8Array, field: string): Uint8Array {
  if (json.length <= MAX_QUERY_BYTES) return json;
  throw formatError(`${field} is too long for a query: more than ${MAX_QUERY_BYTES} bytes.`);
}

/** One content-type: that of the body as it is sent. */
function withContentType(headers: CheckedCall["headers"], contentType: string | undefined): CheckedCall["headers"] {
  const others = headers.filter(([name]) => name.toLowerCase() !== "content-type");
  return contentType === undefined ? others : [...others, ["content-type", contentType]];
}

/**
 * How a call came in; a label for logs and metrics. `stream` is the raw route, `via` the pass-through, `mcp` a tool of an
 * agent; `admin`: an operator performed it.
 */
export type Surface = "rest" | "stream" | "via" | "mcp" | "connect" | "grpc" | "grpc-web" | "admin";

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
  /** Undefined for a request that is described. */
  readonly passed?: PassedRequest | undefined;
}

/** A request that is passed through: any method, without payload or body beside this. */
interface PassedRequest {
  /** Path and query of the url: they go out byte for byte, or not at all, and no placeholder in them is filled. */
  readonly target: string;
  readonly body: StreamedBody | undefined;
  /**
   * Throws RelayError CALLER_NOT_ALLOWED where what the caller proves itself with would reach the provider in the head. To be
   * called with a proof that is right: searching for one is dear.
   */
  readonly requireProofOnce: () => void;
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
