import { createContextKey } from "@connectrpc/connect";
import { type CallerFields, callerFieldsOf, withoutCallerFields } from "../../applications/caller-keys.js";
import type { Reservation } from "../../call/budget.js";
import type { HttpRequest } from "../../http/exchange.js";
import { type Identity, identityOf } from "../../http/identity.js";

/** What the adapter knows of the HTTP request and connect hides. */
export interface RequestContext {
  /** What of the request, beside its message, says who calls. */
  readonly caller: CallerFields;
  readonly identity: Identity;
  /** When the request came in, in milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** The call's share of the memory budget; undefined only where the adapter put nothing. */
  readonly memory: Reservation | undefined;
}

/** What a caller's request says beside its message. */
export function requestContextOf(
  request: HttpRequest,
  clientAddress: (request: HttpRequest) => string,
  memory: Reservation,
): RequestContext {
  const caller = callerFieldsOf(request, clientAddress(request));
  return { caller, identity: identityOf(request), startedAt: performance.now(), memory };
}

/** Where the adapter puts it. */
export const requestContextKey = createContextKey<RequestContext>({
  caller: withoutCallerFields(""),
  identity: { callId: "", requestId: "", traceContext: undefined },
  startedAt: 0,
  memory: undefined,
});
