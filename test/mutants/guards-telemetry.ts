import { type Guard, guard } from "./guard.js";

const SPANS = "telemetry/call-spans.ts";

/** What is told of calls, to whom, and how much of it is kept. */
export const TELEMETRY_GUARDS: readonly Guard[] = [
  guard("request id: sane", "listener/identity.ts", [" && SANE_ID.test(given)", ""], "server/request-id"),
  guard("request id: provider's own", "rest/stream-fields.ts", ["(?!x-request-id$)", ""], "server/request-id"),
  guard(
    "trace context: length of traceparent",
    "trace-context.ts",
    [" || traceparent.length > MAX_PARENT_LENGTH", ""],
    "trace-context",
  ),
  guard(
    "trace context: length of tracestate",
    "trace-context.ts",
    [" || text.length > MAX_STATE_LENGTH", ""],
    "trace-context",
  ),
  guard("trace context: members", "trace-context.ts", ["members.length <= MAX_STATE_MEMBERS && ", ""], "trace-context"),
  guard(
    "trace context: only to providers that ask for it",
    "relay/trace-fields.ts",
    ["if (!provider.passTraceContext) return headers;", ""],
    "server/traces",
  ),
  guard(
    "trace context: one trace at a time",
    "relay/trace-fields.ts",
    ["TRACE_FIELDS.has(name.toLowerCase())", "false"],
    "server/traces",
  ),
  guard(
    "log: no line of an error's text",
    "telemetry/log.ts",
    ["    .slice(stack.indexOf(message) + message.length)\n", ""],
    "telemetry/log",
  ),
  guard("span: no query", SPANS, ['path.split("?", 1)[0]', "path"], "server/traces"),
  guard("metrics: admin token", "metrics-handler.ts", ["!admission.isAdmitted", "false"], "server/metrics"),
  guard(
    "metrics: bounded providers",
    "telemetry/call-metrics.ts",
    ["providers.size < MAX_PROVIDERS || ", "true || "],
    "telemetry/metrics",
  ),
  guard(
    "metrics: bounded series",
    "telemetry/counter.ts",
    ["series.size < MAX_SERIES || ", "true || "],
    "telemetry/metrics",
  ),
  guard(
    "metrics: one count a minute",
    "connection-gauge.ts",
    ["now() - startedAt >= FRESH_MS", "true"],
    "connection-gauge",
  ),
  guard(
    "metrics: connections in slices",
    "store/count-connections.ts",
    ["after = last;", "return total;"],
    "store/count-connections",
  ),
];
