import {
  type Attributes,
  type Context,
  createTraceState,
  isSpanContextValid,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { CallRecord } from "./call-log.js";

/** The parent context of a call's span: the caller's trace, or the root. */
function contextFrom(context: TraceContext | undefined): Context {
  if (context === undefined) return ROOT_CONTEXT;
  const { traceId, parentId: spanId, flags: traceFlags, state } = context;
  const traceState = state === undefined ? {} : { traceState: createTraceState(state) };
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true, ...traceState });
}

/** The trace context to pass on from a span; undefined when it has none, because no SDK is registered. */
function traceContextOf(span: Span): TraceContext | undefined {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  if (!isSpanContextValid({ traceId, spanId, traceFlags })) return undefined;
  return { traceId, parentId: spanId, flags: traceFlags, state: traceState?.serialize() || undefined };
}

/** Whether an OpenTelemetry SDK is registered in this process, through any copy of the API. */
export function isSdkLoaded(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer("") !== undefined;
}

/** What is known of a call when its span starts. */
interface SpanOrigin {
  readonly callId: string;
  readonly surface: string;
  /** When the request came in, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  readonly traceContext: TraceContext | undefined;
}

/** The request that a span describes. It contains no secret: this is the url before a token is placed in it. */
interface SpanRequest {
  readonly method: string;
  readonly origin: string;
  /** Path and query; the span leaves out the query. */
  readonly path: string;
}

/** The RPC that a call amounts to, on any surface. */
export type SpanMethod = "Call" | "CallStream";

/** Starts the spans of a call. */
export type StartSpans = (origin: SpanOrigin, method: SpanMethod) => CallSpans;

/**
 * Creates spans with whatever OpenTelemetry SDK is registered in the process; without one they are no-ops. Names and
 * attributes follow the semantic conventions for HTTP and RPC where these define one.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/
 * @param version of the relay.
 */
export function createTracing(version: string): StartSpans {
  const tracer = trace.getTracer("provider-call-relay", version);
  return (origin, method) => new CallSpans(tracer, origin, method);
}

const RPC_SYSTEMS: Readonly<Record<string, string>> = { connect: "connectrpc", grpc: "grpc", "grpc-web": "grpc" };

/**
 * The spans of one call: the call itself, and within it the wait for a token and each request to the provider. If the
 * SDK's sampler drops the call, no child spans are started: they would be dropped too, at three times the cost.
 */
export class CallSpans {
  readonly #tracer: Tracer;
  readonly #call: Span;
  readonly #isRecording: boolean;
  #token: Span | undefined;
  #request: Span | undefined;
  #resends = 0;

  constructor(tracer: Tracer, origin: SpanOrigin, method: SpanMethod) {
    const name = `relay.v1.RelayService/${method}`;
    const options = { kind: SpanKind.SERVER, startTime: origin.startedAt, attributes: callAttributes(origin, name) };
    this.#tracer = tracer;
    this.#call = tracer.startSpan(name, options, contextFrom(origin.traceContext));
    this.#isRecording = this.#call.isRecording();
  }

  /** Undefined when no SDK is registered and the caller sent no trace context. */
  get traceId(): string | undefined {
    return traceContextOf(this.#call)?.traceId;
  }

  beginToken(): void {
    if (!this.#isRecording) return;
    this.#token = this.#begin("token", SpanKind.INTERNAL, {});
  }

  /** @param errorType undefined when a token was obtained. */
  endToken(errorType: string | undefined): void {
    endSpan(this.#token, errorType);
  }

  beginRequest(request: SpanRequest): void {
    if (!this.#isRecording) return;
    const attributes = requestAttributes(request);
    if (this.#resends > 0) attributes["http.request.resend_count"] = this.#resends;
    this.#resends += 1;
    this.#request = this.#begin(request.method, SpanKind.CLIENT, attributes);
  }

  /** The trace context to send to the provider; undefined when there is none. */
  requestContext(): TraceContext | undefined {
    return traceContextOf(this.#request ?? this.#call);
  }

  /** @param statusCode undefined when no answer came; `errorType` then says why. */
  endRequest(statusCode: number | undefined, errorType: string | undefined): void {
    if (statusCode !== undefined) this.#request?.setAttribute("http.response.status_code", statusCode);
    endSpan(this.#request, statusCode !== undefined && statusCode >= 400 ? String(statusCode) : errorType);
  }

  /** Ends the call's span. */
  end(record: CallRecord): void {
    if (this.#isRecording) this.#describeEnd(record);
    this.#call.end();
  }

  #describeEnd({ provider, applicationId, status, errorType }: CallRecord): void {
    this.#call.setAttribute("relay.status_code", status);
    if (provider !== undefined) this.#call.setAttribute("relay.provider", provider);
    if (applicationId !== undefined) this.#call.setAttribute("relay.application_id", applicationId);
    if (errorType !== undefined) this.#call.setAttribute("error.type", errorType);
    // A caller's mistake is not an error of the server span (semantic conventions for HTTP spans, status).
    if (errorType !== undefined && status >= 500) this.#call.setStatus({ code: SpanStatusCode.ERROR });
  }

  #begin(name: string, kind: SpanKind, attributes: Attributes): Span {
    return this.#tracer.startSpan(name, { kind, attributes }, trace.setSpan(ROOT_CONTEXT, this.#call));
  }
}

function callAttributes({ callId, surface }: SpanOrigin, method: string): Attributes {
  const system = RPC_SYSTEMS[surface];
  return {
    "rpc.method": method,
    "relay.call_id": callId,
    "relay.surface": surface,
    ...(system === undefined ? { "http.request.method": "POST" } : { "rpc.system.name": system }),
  };
}

function requestAttributes({ method, origin, path }: SpanRequest): Attributes {
  const { protocol, hostname, port } = new URL(origin);
  const scheme = protocol.slice(0, -1);
  return {
    "http.request.method": method,
    "url.scheme": scheme,
    "url.full": `${origin}${path.split("?", 1)[0]}`,
    "server.address": hostname,
    "server.port": Number(port || (scheme === "https" ? 443 : 80)),
  };
}

function endSpan(span: Span | undefined, errorType: string | undefined): void {
  if (span === undefined) return;
  if (errorType !== undefined) span.setAttribute("error.type", errorType).setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

/** The trace a request belongs to, according to its caller (W3C Trace Context). */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** The caller's span: 16 lower-case hex digits, not all zero. */
  readonly parentId: string;
  /** Bits 0 (sampled) and 1 (random trace id); other bits are unknown and not passed on. */
  readonly flags: number;
  /** The validated `tracestate`; undefined when absent or malformed. */
  readonly state: string | undefined;
}

/** The least length that implementations should pass on (section 3.3.1.5). More would let callers use us as a carrier. */
const MAX_STATE_LENGTH = 512;
const MAX_STATE_MEMBERS = 32;
const MAX_PARENT_LENGTH = 512;
const KNOWN_FLAGS = 0b11;

const PARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const ALL_ZERO = /^0+$/;
/** Section 3.3.1.3.1. A multi-tenant key may begin with a digit. */
const STATE_KEY = /^(?:[a-z][\da-z_*/-]{0,255}|[\da-z][\da-z_*/-]{0,240}@[a-z][\da-z_*/-]{0,13})$/;
/** Section 3.3.1.3.2. */
const STATE_VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Parses the trace headers of a request. Pure. Undefined when traceparent is missing or malformed; a malformed
 * tracestate is dropped (W3C Trace Context, sections 3.2.2 and 3.3.1). Expects repeated fields already joined by `, `.
 */
export function parseTraceContext(
  traceparent: string | undefined,
  tracestate: string | undefined,
): TraceContext | undefined {
  if (traceparent === undefined || traceparent.length > MAX_PARENT_LENGTH) return undefined;
  const [, version, traceId = "", parentId = "", flags = "", rest] = PARENT.exec(traceparent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (ALL_ZERO.test(traceId) || ALL_ZERO.test(parentId)) return undefined;
  return { traceId, parentId, flags: Number.parseInt(flags, 16) & KNOWN_FLAGS, state: parseState(tracestate) };
}

/** The header fields that pass a trace context on (version 00). */
export function fieldsFromTraceContext(context: TraceContext): ReadonlyArray<readonly [name: string, value: string]> {
  const flags = context.flags.toString(16).padStart(2, "0");
  const parent = ["traceparent", `00-${context.traceId}-${context.parentId}-${flags}`] as const;
  return context.state === undefined ? [parent] : [parent, ["tracestate", context.state]];
}

function parseState(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_STATE_LENGTH) return undefined;
  // Empty members are allowed and ignored (section 3.3.1.2).
  const members = text
    .split(",")
    .map((member) => member.trim())
    .filter(Boolean);
  const keys = new Set(members.map(stateKeyOf));
  const isGood = members.length <= MAX_STATE_MEMBERS && keys.size === members.length && !keys.has(undefined);
  return isGood && members.length > 0 ? members.join(",") : undefined;
}

/** The key of a tracestate member; undefined when the member is malformed. */
function stateKeyOf(member: string): string | undefined {
  const equals = member.indexOf("=");
  const key = member.slice(0, Math.max(0, equals));
  return STATE_KEY.test(key) && STATE_VALUE.test(member.slice(equals + 1)) ? key : undefined;
}
