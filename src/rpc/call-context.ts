import type { HandlerContext } from "@connectrpc/connect";
import type { CallerSignal } from "../caller-signal.js";
import type { Surface } from "../relay/call.js";
import { type RequestContext, requestContextKey } from "./request-context.js";

/** What a typed call carries beside its message, whoever read it from the wire. */
export interface CallContext extends RequestContext {
  readonly surface: Surface;
  /** What is left of the caller's own timeout, in milliseconds; undefined when it set none. */
  readonly timeoutMs: number | undefined;
  /** Aborts when the caller is gone. */
  readonly signal: CallerSignal;
}

/** As connect knows it. */
export function callContextFrom(context: HandlerContext): CallContext {
  return {
    ...context.values.get(requestContextKey),
    surface: surfaceOf(context),
    timeoutMs: context.timeoutMs(),
    signal: context.signal,
  };
}

function surfaceOf({ protocolName }: HandlerContext): Surface {
  return protocolName === "grpc" || protocolName === "grpc-web" ? protocolName : "connect";
}
