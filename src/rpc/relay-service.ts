import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { type CallRequest, type RelayService, ResponseMode } from "../../gen/relay/v1/relay_pb.js";
import { callerKeysFrom } from "../applications/caller-keys.js";
import { overloaded } from "../relay/budget.js";
import type { Call, CallDescription, CallOrigin, Surface } from "../relay/call.js";
import type { Relay } from "../relay/relay.js";
import { descriptionFromMessage } from "./description.js";
import { requestContextKey } from "./request-context.js";
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
      const origin = originOf(request, context);
      return responseFromOutcome(await perform(options, origin, request, context));
    },
  };
}

/** What is known of a call before it is looked at. Throws when it came after its own deadline. */
export function originOf({ providerName }: CallRequest, context: HandlerContext): CallOrigin {
  const startedAt = performance.now();
  const timeoutMs = context.timeoutMs();
  if (timeoutMs !== undefined && timeoutMs <= 0)
    throw new ConnectError("the deadline has passed", Code.DeadlineExceeded);
  const { identity } = context.values.get(requestContextKey);
  return { ...identity, surface: surfaceOf(context), startedAt, providerName };
}

async function perform(
  options: RelayServiceOptions,
  origin: CallOrigin,
  request: CallRequest,
  context: HandlerContext,
) {
  try {
    return await options.relay.perform(callFrom(options, origin, request, context));
  } catch (error) {
    return options.relay.refuse(origin, error);
  }
}

/** The call of a message, in flight from here on. Fails with CALL_FORMAT_ERROR or OVERLOADED. */
export function callFrom(
  options: RelayServiceOptions,
  origin: CallOrigin,
  request: CallRequest,
  context: HandlerContext,
): Call {
  const { clientAddress: address, memory } = context.values.get(requestContextKey);
  if (memory === undefined || !memory.begin()) throw overloaded();
  const description = descriptionFromMessage(request.call);
  // What came compressed was counted so; these are the bytes that are held.
  if (!memory.reserve(sizeOf(description))) throw overloaded();
  const header = (name: string) => context.requestHeader.get(name) ?? undefined;
  const keys = callerKeysFrom(
    { authorization: header("authorization"), partnerKey: header("x-partner-key") },
    { publicKey: request.publicKey, privateKey: request.privateKey },
  );
  const limitMs = Math.min(options.deadlineMs, context.timeoutMs() ?? Number.POSITIVE_INFINITY);
  return {
    ...origin,
    publicKey: keys.publicKey,
    userId: request.userId,
    proof: {
      privateKey: keys.privateKey,
      userSignature: request.userSignature || undefined,
      origin: header("origin"),
      address,
    },
    description,
    responseMode: request.responseMode === ResponseMode.BODY ? "body" : "data",
    memory,
    signal: context.signal,
    deadline: origin.startedAt + limitMs,
  };
}

function sizeOf({ payload, queryString, body }: CallDescription): number {
  return (payload?.length ?? 0) + (queryString?.length ?? 0) + (body?.length ?? 0);
}

function surfaceOf(context: HandlerContext): Surface {
  const name = context.protocolName;
  return name === "grpc" || name === "grpc-web" ? name : "connect";
}
