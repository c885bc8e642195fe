import { parseTraceContext, type TraceContext } from "../telemetry/call-spans.js";
import { type HttpRequest, type HttpResponse, NamedResponse, REQUEST_ID } from "./exchange.js";

/** What a request is called in answers, logs and traces. */
export interface Identity {
  /** New for each request: two callers cannot mean the same call. */
  readonly callId: string;
  /** The caller's own `x-request-id` where it is sane, otherwise the call id; answered as `x-request-id`. */
  readonly requestId: string;
  /** The trace that the caller says it belongs to. */
  readonly traceContext: TraceContext | undefined;
}

/** Visible ASCII, long enough for two UUIDs with words between them. Whatever else comes is not refused, but not used. */
const SANE_ID = /^[\x21-\x7e]{1,128}$/;

const IDENTITY = Symbol("identity");

interface Identified {
  [IDENTITY]?: Identity;
}

/** Names a request, and its answer whoever writes it. */
export function identify(request: HttpRequest, response: HttpResponse, newCallId: () => string): void {
  const { [REQUEST_ID]: given, traceparent, tracestate } = request.headers;
  const callId = newCallId();
  const requestId = typeof given === "string" && SANE_ID.test(given) ? given : callId;
  const traceContext =
    traceparent === undefined ? undefined : parseTraceContext(String(traceparent), textOf(tracestate));
  (request as Identified)[IDENTITY] = { callId, requestId, traceContext };
  if (response instanceof NamedResponse) response.requestId = requestId;
  else response.setHeader(REQUEST_ID, requestId);
}

/** How the request was named. Throws for one that did not come through a listener. */
export function identityOf(request: HttpRequest): Identity {
  const identity = (request as Identified)[IDENTITY];
  if (identity === undefined) throw new Error("the request has no identity");
  return identity;
}

function textOf(field: string | string[] | undefined): string | undefined {
  return field === undefined ? undefined : String(field);
}
