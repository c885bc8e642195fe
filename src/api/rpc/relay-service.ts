import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import {
  type CallDescription as CallDescriptionMessage,
  type CallRequest,
  ResponseMode,
} from "../../../gen/relay/v1/relay_pb.js";
import { type CallerFields, callerFieldsOf, callerFrom, withoutCallerFields } from "../../applications/caller.js";
import { type Reservation, requireRoom } from "../../call/budget.js";
import {
  type Call,
  type CallDescription,
  type CallOrigin,
  createCall,
  CALL_JSON_LIMITS as LIMITS,
  type Surface,
} from "../../call/call.js";
import type { LargePart, Performed, Relay } from "../../call/relay.js";
import type { HttpRequest } from "../../http/exchange.js";
import { type Identity, identityOf } from "../../http/identity.js";
import type { CallerSignal } from "../../model/caller-signal.js";
import { formatError, overloaded, type RelayError } from "../../model/errors.js";

/** What the typed service needs from the rest of the service. */
export interface RelayServiceOptions {
  readonly relay: Relay;
  readonly deadlineMs: number;
}

/** Performs the call of a message; never rejects. */
export function performCall<Large = never>(
  options: RelayServiceOptions,
  request: CallRequest,
  context: CallContext,
  largePart?: LargePart<Large>,
): Promise<Performed<Large>> | Performed<Large> {
  const origin = originOf(request, context);
  let call: Call;
  try {
    call = callFrom(options, origin, request, context);
  } catch (error) {
    return { outcome: options.relay.refuse(origin, error), large: undefined };
  }
  return options.relay.perform(call, largePart);
}

/** What is known about a call before it is read. */
export function originOf(
  { providerName }: Pick<CallRequest, "providerName">,
  { identity, surface, startedAt }: CallContext,
): CallOrigin {
  const { callId, requestId, traceContext } = identity;
  return { callId, requestId, traceContext, surface, startedAt, providerName };
}

/** Reads the call of a message, which is in flight from then on. Fails with CALL_FORMAT_ERROR or OVERLOADED. */
export function callFrom(
  options: RelayServiceOptions,
  origin: CallOrigin,
  request: CallRequest,
  context: CallContext,
): Call {
  const { memory } = context;
  if (memory === undefined || !memory.begin()) throw overloaded();
  const description = descriptionFromMessage(request.call);
  // A compressed message was counted by its compressed size; these are the bytes that are held.
  requireRoom(memory, sizeOf(description));
  return createCall(origin, callerFrom(context.caller, request), {
    description,
    responseMode: request.responseMode === ResponseMode.BODY ? "body" : "data",
    memory,
    signal: context.signal,
    deadline: deadlineOf(options, context),
  });
}

/** The earlier of the relay's deadline and the caller's own. */
export function deadlineOf(
  { deadlineMs }: RelayServiceOptions,
  { startedAt, timesOutAt }: Pick<CallContext, "startedAt" | "timesOutAt">,
): number {
  return Math.min(startedAt + deadlineMs, timesOutAt);
}

function sizeOf({ payload, queryString, body }: CallDescription): number {
  return (payload?.length ?? 0) + (queryString?.length ?? 0) + (body?.length ?? 0);
}

/** What a typed call has besides its message. */
export interface CallContext extends RequestContext {
  readonly surface: Surface;
  /** When the caller's own timeout expires, in milliseconds of `performance.now()`; infinite without one. */
  readonly timesOutAt: number;
  /** Aborts when the caller disconnects. */
  readonly signal: CallerSignal;
}

/** The context as connect provides it. Throws when the request arrives after its own deadline. */
export function callContextFrom(context: HandlerContext): CallContext {
  const timeoutMs = context.timeoutMs() ?? Number.POSITIVE_INFINITY;
  if (timeoutMs <= 0) throw new ConnectError("the deadline has passed", Code.DeadlineExceeded);
  return {
    signal: context.signal,
    ...context.values.get(requestContextKey),
    surface: surfaceOf(context),
    timesOutAt: performance.now() + timeoutMs,
  };
}

function surfaceOf({ protocolName }: HandlerContext): Surface {
  return protocolName === "grpc" || protocolName === "grpc-web" ? protocolName : "connect";
}

/** What the adapter knows about the HTTP request, and connect hides. */
interface RequestContext {
  /** The parts of the request, besides its message, that identify the caller. */
  readonly caller: CallerFields;
  readonly identity: Identity;
  /** When the request came in, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** The call's share of the memory budget; undefined only if the adapter set none. */
  readonly memory: Reservation | undefined;
}

/** Reads the context from a request. */
export function requestContextOf(request: HttpRequest, address: string, memory: Reservation): RequestContext {
  return {
    caller: callerFieldsOf(request, address),
    identity: identityOf(request),
    startedAt: performance.now(),
    memory,
  };
}

/** The key under which the adapter stores it. */
export const requestContextKey = createContextKey<RequestContext & Partial<Pick<CallContext, "signal">>>({
  caller: withoutCallerFields(""),
  identity: { callId: "", requestId: "", traceContext: undefined },
  startedAt: 0,
  memory: undefined,
});

/**
 * Reads the call from its message.
 *
 * Fails with CALL_FORMAT_ERROR that names the field, with the messages of the JSON route.
 */
function descriptionFromMessage(message: CallDescriptionMessage | undefined): CallDescription {
  return {
    url: required(message?.url, "url"),
    method: required(message?.method, "method"),
    payload: jsonText(message?.payload, "payload"),
    explodeArrays: message?.explodeArrays ?? false,
    headers: Object.entries(message?.headers ?? {}),
    queryString: isEmpty(message?.queryString) ? undefined : jsonText(message?.queryString, "queryString"),
    body: message?.body.length ? message.body : undefined,
  };
}

/** proto3 cannot tell an empty string from a missing one. */
function required(value: string | undefined, field: string): string {
  if (value === undefined || value === "") throw formatError(`${field} is missing.`);
  return value;
}

function isEmpty(struct: JsonObject | undefined): boolean {
  return struct !== undefined && Object.keys(struct).length === 0;
}

/** A Struct as JSON text. */
function jsonText(struct: JsonObject | undefined, field: string): Uint8Array | undefined {
  if (struct === undefined) return undefined;
  // Checked before it is written: ten mebibytes of control characters become sixty.
  if (keysOf(struct, field, 1) > LIMITS.maxKeys) throw tooLarge(field);
  return Buffer.from(JSON.stringify(struct));
}

/** Counts members at any depth. Fails for a value that is nested too deep, and for a double that is NaN or infinite. */
function keysOf(value: JsonValue, field: string, depth: number): number {
  if (typeof value === "number" && !Number.isFinite(value))
    throw formatError(`${field} has a number that JSON cannot represent (NaN or infinite).`);
  if (typeof value !== "object" || value === null) return 0;
  if (depth > LIMITS.maxDepth) throw tooLarge(field);
  const inner = Array.isArray(value) ? value : Object.values(value);
  let keys = Array.isArray(value) ? 0 : inner.length;
  for (const each of inner) keys += keysOf(each, field, depth + 1);
  return keys;
}

function tooLarge(field: string): RelayError {
  return formatError(`${field} has too many keys or is nested too deeply.`);
}
