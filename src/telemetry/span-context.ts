import {
  type Context,
  createTraceState,
  isSpanContextValid,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  type Span,
  trace,
} from "@opentelemetry/api";
import type { TraceContext } from "./trace-context.js";

/** What a span that goes on with a caller's trace is begun in. */
export function contextFrom(context: TraceContext | undefined): Context {
  if (context === undefined) return ROOT_CONTEXT;
  const { traceId, parentId: spanId, flags: traceFlags, state } = context;
  const traceState = state === undefined ? {} : { traceState: createTraceState(state) };
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true, ...traceState });
}

/** How to go on with the trace of a span; undefined when it has none, since nobody makes spans. */
export function traceContextOf(span: Span): TraceContext | undefined {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  if (!isSpanContextValid({ traceId, spanId, traceFlags })) return undefined;
  return { traceId, parentId: spanId, flags: traceFlags, state: traceState?.serialize() || undefined };
}

/** Whether an OpenTelemetry SDK has been registered in this process, by whichever copy of the API. */
export function isSdkLoaded(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer("") !== undefined;
}
