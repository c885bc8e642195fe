import type { HandlerContext } from "@connectrpc/connect";
import type { AdministeredStore, Administration } from "../administration/administration.js";
import type { AuditStamp } from "../administration/audit-stamp.js";
import type { AuditStore } from "../audit.js";
import type { DisconnectOptions } from "../authorization/disconnect.js";
import type { HttpRequest } from "../listener/exchange.js";
import type { Pending } from "../pending.js";
import type { ProviderCatalog } from "../providers/provider.js";
import type { CallStore } from "../records/call-store.js";
import type { CaptureStore } from "../records/capture-store.js";
import type { Sealer } from "../tokens/seal.js";
import type { CallServiceOptions } from "./call-service.js";
import { operatorContextKey } from "./operator-context.js";

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
