import { createContextKey } from "@connectrpc/connect";
import type { Identity } from "../listener/identity.js";
import type { Reservation } from "../relay/budget.js";

/** What the adapter knows of the HTTP request and connect hides. */
export interface RequestContext {
  /** The client's IP address. */
  readonly clientAddress: string;
  readonly identity: Identity;
  /** The call's share of the memory budget; undefined only where the adapter put nothing. */
  readonly memory: Reservation | undefined;
}

/** Where the adapter puts it. */
export const requestContextKey = createContextKey<RequestContext>({
  clientAddress: "",
  identity: { callId: "", requestId: "", traceContext: undefined },
  memory: undefined,
});
