import { type Guard, guard } from "./guard.js";

/** What is told of calls, to whom, and how much of it is kept. */
export const TELEMETRY_GUARDS: readonly Guard[] = [
  guard("log: whole lines on an output of several processes", ["isShared ? PIPE_BUF : ", ""], "telemetry/line-blocks"),
  guard("request id: sane", [" && SANE_ID.test(given)", ""], "server/request-id"),
  guard("request id: provider's own", ["(?!x-request-id$)", ""], "server/request-id"),
  guard(
    "trace context: length of traceparent",
    [" || traceparent.length > MAX_PARENT_LENGTH", ""],
    "telemetry/trace-context",
  ),
  guard("trace context: length of tracestate", [" || text.length > MAX_STATE_LENGTH", ""], "telemetry/trace-context"),
  guard("trace context: members", ["members.length <= MAX_STATE_MEMBERS && ", ""], "telemetry/trace-context"),
  guard(
    "trace context: only to providers that ask for it",
    ["if (!provider.passTraceContext) return headers;", ""],
    "server/traces",
  ),
  guard("trace context: one trace at a time", ["TRACE_FIELDS.has(name.toLowerCase())", "false"], "server/traces"),
  guard(
    "log: no line of an error's text",
    ["    .slice(stack.indexOf(message) + message.length)\n", ""],
    "telemetry/log",
  ),
  guard("span: no query", ['path.split("?", 1)[0]', "path"], "server/traces"),
  guard(
    "metrics: admin token",
    [
      "): Promise<void> { const admission = await admit(request); if (!admission.isAdmitted",
      "): Promise<void> { const admission = await admit(request); if (false",
    ],
    "server/metrics",
  ),
  guard("metrics: one count a minute", ["now() - startedAt >= FRESH_MS", "true"], "app/connection-gauge"),
  guard("metrics: connections in slices", ["after = slice.last;", "return total;"], "store/count-connections"),
];
