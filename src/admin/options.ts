import type { HandlerContext } from "@connectrpc/connect";
import type { Call } from "../call/call.js";
import type { Explanation } from "../call/explanation.js";
import type { Relay } from "../call/relay.js";
import type { HttpRequest } from "../http/exchange.js";
import type { Pending } from "../lib/pending.js";
import type { AuditStore } from "../model/audit.js";
import type { DisconnectOptions } from "../oauth/disconnect.js";
import type { ProviderCatalog } from "../providers/provider.js";
import type { CallStore } from "../records/call-store.js";
import type { CaptureStore } from "../records/capture-store.js";
import type { Sealer } from "../sealing/seal.js";
import type { AdministeredStore, Administration, AuditStamp } from "./administration.js";
import { operatorContextKey } from "./operator.js";

/** What explaining and performing calls needs from the rest of the service. */
export interface CallServiceOptions {
  readonly relay: Relay;
  /** See `explainCall()`. */
  readonly explain: (read: () => Call) => Promise<Explanation>;
  readonly deadlineMs: number;
}

/** What the services of the administration port work on; everything is a value or an interface. */
export interface AdminOptions {
  readonly store: AdministeredStore & {
    readonly audit: AuditStore;
    readonly calls: CallStore;
    readonly captures: CaptureStore;
  };
  readonly sealer: Sealer;
  readonly catalog: ProviderCatalog;
  /** Files of the operator's own definitions, by provider name. */
  readonly providerFiles: ReadonlyMap<string, string>;
  /** How connections are ended, and what waits for it when the service stops. */
  readonly disconnection: DisconnectOptions & { readonly pending: Pending };
  /** Resolves when the service begins to stop, or when the signal aborts. */
  readonly stopped: (signal: AbortSignal) => Promise<void>;
  /** Webhooks may go to this machine. */
  readonly allowLoopback: boolean;
  readonly clientAddress: (request: HttpRequest) => string;
  /** Origin at which callers reach the relay; undefined when it is not known. */
  readonly publicUrl: () => string | undefined;
  readonly calls: CallServiceOptions;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly newAuditStamp: () => AuditStamp;
  readonly onFault: (where: string, error: unknown) => void;
}

/** What a request's operator changes things with. */
export function administrationFor(
  { store, sealer, now, newAuditStamp }: AdminOptions,
  { values }: Pick<HandlerContext, "values">,
): Administration {
  return { actor: values.get(operatorContextKey)?.name ?? "", store, sealer, now, newAuditStamp };
}
