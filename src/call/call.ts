import type { CallerProof } from "../applications/caller.js";
import type { Steps } from "../lib/turns.js";
import type { CallerSignal } from "../model/caller-signal.js";
import { formatError } from "../model/errors.js";
import { decideHeaders, findHeader } from "../providers/credential.js";
import type { TraceContext } from "../telemetry/call-spans.js";
import type { StreamedBody } from "../upstream/request.js";
import { type BodyInput, bodyFromCall } from "./body.js";
import type { Reservation } from "./budget.js";
import { queryFromJson } from "./urlencoded.js";

/** Longest JSON text that becomes part of the query. */
const MAX_QUERY_BYTES = 32 * 1024;

/** The caller-controlled part of the request. */
export interface CheckedCall {
  /** The HTTP method sent: not a pseudo-method. Upper-case, except in a passed-through request. */
  readonly method: string;
  /** Headers to forward, including the body's content-type. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: Uint8Array | undefined;
  /** To append to the url's query, in order. */
  readonly query: ReadonlyArray<readonly [name: string, value: string]>;
  /** `base64` for GETFILE, whatever the media type. */
  readonly answerAs: "auto" | "base64";
}

/**
 * Decides the method, headers, body and query of the request, before any secret is touched. Runs in steps, since a body
 * may have to be rewritten.
 *
 * Fails with CALL_FORMAT_ERROR, which names the field.
 */
export function* checkCall(
  description: CallDescription,
  { newBoundary, memory }: Pick<BodyInput, "newBoundary" | "memory">,
): Steps<CheckedCall> {
  if (description.passed !== undefined) return checkPassed(description);
  const decided = decideHeaders(description.headers);
  const contentType = findHeader(decided.forwarded, "content-type");
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
  // There is a single content-type: that of the body that is sent.
  const others = decided.forwarded.filter((field) => field !== contentType);
  return {
    method: body.method,
    headers: body.contentType === undefined ? others : [...others, ["content-type", body.contentType]],
    body: body.body,
    query: body.query.length === 0 ? query : [...query, ...body.query],
    answerAs: body.answerAs,
  };
}

/** A token (RFC 9110 section 5.6.2), long enough for every method in use. */
const METHOD = /^[\w!#$%&'*+.^`|~-]{1,64}$/;
/** CONNECT opens a tunnel, TRACE echoes the token, PRI is no request. Case-insensitive, as some servers are. */
const NEVER_SENT = /^(?:CONNECT|TRACE|PRI)$/i;

/** A passed-through request is checked but not changed, except that fields a caller must never set are dropped. */
function checkPassed({ method, headers }: CallDescription): CheckedCall {
  if (!METHOD.test(method) || NEVER_SENT.test(method)) {
    throw formatError("method must be an HTTP token other than CONNECT, TRACE and PRI.");
  }
  return { method, headers: decideHeaders(headers).forwarded, body: undefined, query: [], answerAs: "auto" };
}

/**
 * Turns a described request into a passed-through one without a body, to explain it.
 *
 * Throws CALL_FORMAT_ERROR for members that only a described request has.
 */
export function asPassedThrough(description: CallDescription): CallDescription {
  const { url, payload, queryString, body } = description;
  if (payload !== undefined || queryString !== undefined || body !== undefined) {
    throw formatError("A passed-through request has no payload, queryString or body. Leave them out.");
  }
  const tail = /^[a-z]+:\/\/[^/?#]*(.*)$/is.exec(url)?.[1] ?? "";
  const target = tail.startsWith("/") ? tail : `/${tail}`;
  return { ...description, passed: { target, body: undefined, requireProofOnce: () => {} } };
}

/** The payload; short where the method has no body, since it then becomes part of the query. */
function payloadOf({ method, payload }: CallDescription): Uint8Array | undefined {
  return payload !== undefined && /^(?:get|head|getfile)$/i.test(method) ? short(payload, "payload") : payload;
}

/** Fails for text too long for a query: no server accepts a longer request line, and encoding it would delay others. */
function short(json: Uint8Array, field: string): Uint8Array {
  if (json.length <= MAX_QUERY_BYTES) return json;
  throw formatError(`${field} is too long for a query: more than ${MAX_QUERY_BYTES} bytes.`);
}

/**
 * How a call came in; a label in logs and metrics. `stream` is the raw route, `via` the pass-through, `mcp` an agent's
 * tool, `admin` a call performed by an operator.
 */
export type Surface = "rest" | "stream" | "via" | "mcp" | "connect" | "grpc" | "grpc-web" | "admin";

/** Deepest nesting and most keys of a call's JSON (threats J01, J11): far beyond any API, far below what costs time. */
export const CALL_JSON_LIMITS = { maxDepth: 64, maxKeys: 10_000 } as const;

/** How the provider's body is returned: mapped to `data`, or as exact bytes. */
export type ResponseMode = "data" | "body";

/** The HTTP request that a caller describes: well-formed, not checked yet. */
export interface CallDescription {
  readonly url: string;
  readonly method: string;
  /** UTF-8 JSON text of an object, `{}` included, exactly as the caller wrote it; undefined for missing and null. */
  readonly payload: Uint8Array | undefined;
  /** In the order given, with names as written. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** UTF-8 JSON text of a non-empty object; undefined for missing, null and `{}`. */
  readonly queryString: Uint8Array | undefined;
  /** Whether each element of an array in `payload` or `queryString` becomes a pair or part of its own. */
  readonly explodeArrays: boolean;
  /** Exact bytes to send instead of a payload. */
  readonly body: Uint8Array | undefined;
  /** Undefined for a described request. */
  readonly passed?: PassedRequest | undefined;
}

/** A passed-through request: any method, without `payload` or `body` in the description. */
interface PassedRequest {
  /** Path and query of the url. They are sent byte for byte or the call is refused; placeholders are not filled. */
  readonly target: string;
  readonly body: StreamedBody | undefined;
  /**
   * Throws RelayError CALLER_NOT_ALLOWED when the caller's proof would also reach the provider in the request head.
   * Call it only after the proof was accepted: the search is expensive.
   */
  readonly requireProofOnce: () => void;
}

/** What is known about a call before it is read; enough for its log line and its row. */
export interface CallOrigin {
  readonly callId: string;
  /** The caller's own request id; the call id without one. */
  readonly requestId: string;
  /** The caller's trace, if it sent one. */
  readonly traceContext: TraceContext | undefined;
  readonly surface: Surface;
  /** When the request came in, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** As the caller wrote it: a name, an alias, or invalid text. */
  readonly providerName: string;
}

/** One call, as every protocol passes it to the {@link Relay}. */
export interface Call extends CallOrigin {
  readonly publicKey: string;
  readonly userId: string;
  readonly proof: CallerProof;
  readonly description: CallDescription;
  readonly responseMode: ResponseMode;
  /** The call's share of the memory budget. */
  readonly memory: Reservation;
  /** Aborts when the caller disconnects. */
  readonly signal: CallerSignal | undefined;
  /** When the call must have ended, in milliseconds of `performance.now()`. */
  readonly deadline: number;
}

/** Makes a call. Member by member: a spread takes longer in V8 than reading the request's body. */
export function createCall(
  origin: CallOrigin,
  caller: Pick<Call, "publicKey" | "userId" | "proof">,
  read: Pick<Call, "description" | "responseMode" | "memory" | "signal" | "deadline">,
): Call {
  return {
    callId: origin.callId,
    requestId: origin.requestId,
    traceContext: origin.traceContext,
    surface: origin.surface,
    startedAt: origin.startedAt,
    providerName: origin.providerName,
    publicKey: caller.publicKey,
    userId: caller.userId,
    proof: caller.proof,
    description: read.description,
    responseMode: read.responseMode,
    memory: read.memory,
    signal: read.signal,
    deadline: read.deadline,
  };
}
