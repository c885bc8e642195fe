import { Code, ConnectError, createContextKey, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { type CallRequest, type RelayService, ResponseMode } from "../../../gen/relay/v1/relay_pb.js";
import { type CallerFields, callerFieldsOf, callerFrom, withoutCallerFields } from "../../applications/caller.js";
import { type Reservation, requireRoom } from "../../call/budget.js";
import type { Call, CallDescription, CallOrigin, Surface } from "../../call/call.js";
import type { LargePart, Performed, Relay } from "../../call/relay.js";
import type { HttpRequest } from "../../http/exchange.js";
import { type Identity, identityOf } from "../../http/identity.js";
import type { CallerSignal } from "../../model/caller-signal.js";
import { overloaded } from "../../model/errors.js";
import { descriptionFromMessage } from "./description.js";
import { responseFromOutcome } from "./row.js";

/** What the typed service needs from the rest of the service. */
export interface RelayServiceOptions {
  readonly relay: Relay;
  readonly deadlineMs: number;
}

/** `Call` of relay.v1.RelayService: message → relay → message. Every outcome is a row with RPC code OK. */
export function createRelayService(options: RelayServiceOptions): Pick<ServiceImpl<typeof RelayService>, "call"> {
  return {
    async call(request, context) {
      return responseFromOutcome((await performCall(options, request, callContextFrom(context))).outcome);
    },
  };
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

/** What is known of a call before it is looked at. */
export function originOf(
  { providerName }: Pick<CallRequest, "providerName">,
  { identity, surface, startedAt }: CallContext,
): CallOrigin {
  const { callId, requestId, traceContext } = identity;
  return { callId, requestId, traceContext, surface, startedAt, providerName };
}

/** The call of a message, in flight from here on. Fails with CALL_FORMAT_ERROR or OVERLOADED. */
export function callFrom(
  options: RelayServiceOptions,
  origin: CallOrigin,
  request: CallRequest,
  context: CallContext,
): Call {
  const { memory } = context;
  if (memory === undefined || !memory.begin()) throw overloaded();
  const description = descriptionFromMessage(request.call);
  // What came compressed was counted so; these are the bytes that are held.
  requireRoom(memory, sizeOf(description));
  const { publicKey, userId, proof } = callerFrom(context.caller, request);
  return {
    // Member by member, as on the JSON route: V8 is slow at spreading.
    callId: origin.callId,
    requestId: origin.requestId,
    traceContext: origin.traceContext,
    surface: origin.surface,
    startedAt: origin.startedAt,
    providerName: origin.providerName,
    publicKey,
    userId,
    proof,
    description,
    responseMode: request.responseMode === ResponseMode.BODY ? "body" : "data",
    memory,
    signal: context.signal,
    deadline: deadlineOf(options, context),
  };
}

/** When a call must have ended: by the relay's deadline, or by the caller's own. */
export function deadlineOf(
  { deadlineMs }: RelayServiceOptions,
  { startedAt, timesOutAt }: Pick<CallContext, "startedAt" | "timesOutAt">,
): number {
  return Math.min(startedAt + deadlineMs, timesOutAt);
}

function sizeOf({ payload, queryString, body }: CallDescription): number {
  return (payload?.length ?? 0) + (queryString?.length ?? 0) + (body?.length ?? 0);
}

/** What a typed call carries beside its message, whoever read it from the wire. */
export interface CallContext extends RequestContext {
  readonly surface: Surface;
  /** When the caller's own timeout is over, in milliseconds of `performance.now()`; infinite when it set none. */
  readonly timesOutAt: number;
  /** Aborts when the caller is gone. */
  readonly signal: CallerSignal;
}

/** As connect knows it. Throws when the request came after its own deadline. */
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

/** What the adapter knows of the HTTP request and connect hides. */
interface RequestContext {
  /** What of the request, beside its message, says who calls. */
  readonly caller: CallerFields;
  readonly identity: Identity;
  /** When the request came in, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** The call's share of the memory budget; undefined only where the adapter put nothing. */
  readonly memory: Reservation | undefined;
}

/** What a caller's request says beside its message. */
export function requestContextOf(request: HttpRequest, address: string, memory: Reservation): RequestContext {
  return {
    caller: callerFieldsOf(request, address),
    identity: identityOf(request),
    startedAt: performance.now(),
    memory,
  };
}

/** Where the adapter puts it. */
export const requestContextKey = createContextKey<RequestContext & Partial<Pick<CallContext, "signal">>>({
  caller: withoutCallerFields(""),
  identity: { callId: "", requestId: "", traceContext: undefined },
  startedAt: 0,
  memory: undefined,
});
