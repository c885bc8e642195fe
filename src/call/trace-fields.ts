import type { HeaderPairs } from "../providers/provider.js";
import { fieldsFromTraceContext } from "../telemetry/call-spans.js";
import type { AllowedCall } from "./allowed-call.js";

/** Fields of W3C Trace Context; a caller that sends one itself speaks of a trace of its own. */
const TRACE_FIELDS: ReadonlySet<string> = new Set(["traceparent", "tracestate"]);

/**
 * Adds the fields with which a provider goes on with the call's trace, where its definition asks for them: a trace tells
 * whoever it is passed to which calls belong together.
 */
export function withTraceFields(headers: HeaderPairs, { provider, checked, trace }: AllowedCall): HeaderPairs {
  if (!provider.passTraceContext) return headers;
  if (checked.headers.some(([name]) => TRACE_FIELDS.has(name.toLowerCase()))) return headers;
  const context = trace.spans?.requestContext() ?? trace.origin.traceContext;
  return context === undefined ? headers : [...headers, ...fieldsFromTraceContext(context)];
}
