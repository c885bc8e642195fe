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

/** What a span that goes on with a caller's trace is begun in. */
function contextFrom(context: TraceContext | undefined): Context {
  if (context === undefined) return ROOT_CONTEXT;
  const { traceId, parentId: spanId, flags: traceFlags, state } = context;
  const traceState = state === undefined ? {} : { traceState: createTraceState(state) };
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true, ...traceState });
}

/** How to go on with the trace of a span; undefined when it has none, since nobody makes spans. */
function traceContextOf(span: Span): TraceContext | undefined {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  if (!isSpanContextValid({ traceId, spanId, traceFlags })) return undefined;
  return { traceId, parentId: spanId, flags: traceFlags, state: traceState?.serialize() || undefined };
}

/** Whether an OpenTelemetry SDK has been registered in this process, by whichever copy of the API. */
export function isSdkLoaded(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer("") !== undefined;
}

/** What a call's span is begun with. */
interface SpanOrigin {
  readonly callId: string;
  readonly surface: string;
  /** When the request came in, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  readonly traceContext: TraceContext | undefined;
}

/** Which request a span is of. Nothing of it may be a secret: it is the url as it was before a token came into it. */
interface SpanRequest {
  readonly method: string;
  readonly origin: string;
  /** Path and query, of which the query is left out. */
  readonly path: string;
}

/** The RPC that a call is, whatever surface it came in by. */
export type SpanMethod = "Call" | "CallStream";

/** Begins the spans of calls. */
export type StartSpans = (origin: SpanOrigin, method: SpanMethod) => CallSpans;

/**
 * Makes spans with whatever OpenTelemetry SDK is registered in the process; without one they go nowhere. Names and
 * attributes are those of the semantic conventions for HTTP and RPC where there is one.
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
 * The spans of one call: the call itself, and in it the wait for a token and each request to the provider. Within a call
 * that the SDK's sampler has left out none is begun: they would be left out, too, and cost three times as much.
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

  /** Undefined when nobody makes spans and the caller named no trace. */
  get traceId(): string | undefined {
    return traceContextOf(this.#call)?.traceId;
  }

  beginToken(): void {
    if (!this.#isRecording) return;
    this.#token = this.#begin("token", SpanKind.INTERNAL, {});
  }

  /** @param errorType undefined when there is a token. */
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

  /** Where the provider goes on with the trace; undefined when there is none. */
  requestContext(): TraceContext | undefined {
    return traceContextOf(this.#request ?? this.#call);
  }

  /** @param statusCode undefined when no answer came, and then `errorType` says why. */
  endRequest(statusCode: number | undefined, errorType: string | undefined): void {
    if (statusCode !== undefined) this.#request?.setAttribute("http.response.status_code", statusCode);
    endSpan(this.#request, statusCode !== undefined && statusCode >= 400 ? String(statusCode) : errorType);
  }

  /** The call has ended, and with it what was still open. */
  end(record: CallRecord): void {
    if (this.#isRecording) this.#describeEnd(record);
    this.#call.end();
  }

  #describeEnd({ provider, applicationId, status, errorType }: CallRecord): void {
    this.#call.setAttribute("relay.status_code", status);
    if (provider !== undefined) this.#call.setAttribute("relay.provider", provider);
    if (applicationId !== undefined) this.#call.setAttribute("relay.application_id", applicationId);
    if (errorType !== undefined) this.#call.setAttribute("error.type", errorType);
    // What the caller did wrong is no error of this side (semantic conventions for HTTP spans, status).
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

/** Which trace a request belongs to, as its caller says (W3C Trace Context). */
export interface TraceContext {
  /** 32 lower-case hex digits, not all zero. */
  readonly traceId: string;
  /** The caller's span: 16 lower-case hex digits, not all zero. */
  readonly parentId: string;
  /** Bits 0 (sampled) and 1 (random trace id); others are not known and not passed on. */
  readonly flags: number;
  /** `tracestate`, checked; undefined when there is none that is well formed. */
  readonly state: string | undefined;
}

/** What the standard makes everybody pass on (section 3.3.1.5); more is a caller's way to make us carry things. */
const MAX_STATE_LENGTH = 512;
const MAX_STATE_MEMBERS = 32;
const MAX_PARENT_LENGTH = 512;
const KNOWN_FLAGS = 0b11;

const PARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const ALL_ZERO = /^0+$/;
/** Section 3.3.1.3.1; a tenant's key may begin with a digit. */
const STATE_KEY = /^(?:[a-z][\da-z_*/-]{0,255}|[\da-z][\da-z_*/-]{0,240}@[a-z][\da-z_*/-]{0,13})$/;
/** Section 3.3.1.3.2. */
const STATE_VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Reads the fields of a request. Pure. Undefined when there is no traceparent or a malformed one; a malformed tracestate
 * is left out (W3C Trace Context, sections 3.2.2 and 3.3.1). Fields that came twice are read as they were joined by `, `.
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

/** The fields of a request that goes on with it (version 00). */
export function fieldsFromTraceContext(context: TraceContext): ReadonlyArray<readonly [name: string, value: string]> {
  const flags = context.flags.toString(16).padStart(2, "0");
  const parent = ["traceparent", `00-${context.traceId}-${context.parentId}-${flags}`] as const;
  return context.state === undefined ? [parent] : [parent, ["tracestate", context.state]];
}

function parseState(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_STATE_LENGTH) return undefined;
  // An empty member says nothing (section 3.3.1.2).
  const members = text
    .split(",")
    .map((member) => member.trim())
    .filter(Boolean);
  const keys = new Set(members.map(stateKeyOf));
  const isGood = members.length <= MAX_STATE_MEMBERS && keys.size === members.length && !keys.has(undefined);
  return isGood && members.length > 0 ? members.join(",") : undefined;
}

/** Undefined for a member that is malformed. */
function stateKeyOf(member: string): string | undefined {
  const equals = member.indexOf("=");
  const key = member.slice(0, Math.max(0, equals));
  return STATE_KEY.test(key) && STATE_VALUE.test(member.slice(equals + 1)) ? key : undefined;
}
