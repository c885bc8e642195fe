import { randomUUID } from "node:crypto";
import { parseTraceContext, type TraceContext } from "../telemetry/call-spans.js";
import { type HttpRequest, type HttpResponse, NamedResponse, REQUEST_ID } from "./exchange.js";

/** Version 4 and 7 differ in this digit; the variant behind it is the same. */
const VERSION_AT = 14;
const LENGTH = 36;

/**
 * Creates call ids: a UUID that begins with its time (RFC 9562, version 7), by which the record of a call is found
 * without an index on ids. An id reveals when the call began, and nothing else.
 *
 * @param now milliseconds since the epoch.
 */
export function createCallIds(now: () => number): () => string {
  return () => {
    const hex = now().toString(16).padStart(12, "0");
    return `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(VERSION_AT + 1)}`;
  };
}

/** When a call began, in milliseconds since the epoch; undefined for text that cannot be a call id. */
export function timeOfCallId(callId: string): number | undefined {
  if (callId.length !== LENGTH || callId[VERSION_AT] !== "7") return undefined;
  const time = Number.parseInt(callId.slice(0, 8), 16) * 0x1_0000 + Number.parseInt(callId.slice(9, 13), 16);
  return Number.isNaN(time) ? undefined : time;
}

/** The ids of a request in answers, logs and traces. */
export interface Identity {
  /** New for each request, so that it is unique. */
  readonly callId: string;
  /** The caller's `x-request-id` if it is sane, otherwise the call id; sent back as `x-request-id`. */
  readonly requestId: string;
  /** The trace that the request belongs to, by the caller's fields. */
  readonly traceContext: TraceContext | undefined;
}

/** Visible ASCII, long enough for two UUIDs and some words. Anything else is ignored, not refused. */
const SANE_ID = /^[\x21-\x7e]{1,128}$/;

const IDENTITY = Symbol("identity");

interface Identified {
  [IDENTITY]?: Identity;
}

/** Gives a request its ids, and its response the request id. */
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

/** The ids of a request. Throws for a request that did not come through a listener. */
export function identityOf(request: HttpRequest): Identity {
  const identity = (request as Identified)[IDENTITY];
  if (identity === undefined) throw new Error("the request has no identity");
  return identity;
}

function textOf(field: string | string[] | undefined): string | undefined {
  return field === undefined ? undefined : String(field);
}
