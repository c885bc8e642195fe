import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Surface } from "../../call/call.js";
import type { CallerSignal } from "../../model/caller-signal.js";
import { type RequestContext, requestContextKey } from "./request-context.js";

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
    ...context.values.get(requestContextKey),
    surface: surfaceOf(context),
    timesOutAt: performance.now() + timeoutMs,
    signal: context.signal,
  };
}

function surfaceOf({ protocolName }: HandlerContext): Surface {
  return protocolName === "grpc" || protocolName === "grpc-web" ? protocolName : "connect";
}
