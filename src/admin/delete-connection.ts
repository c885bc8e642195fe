import { type DisconnectOptions, disconnect } from "../authorization/disconnect.js";
import type { Revocation } from "../tokens/revoke.js";
import type { Administration } from "./administration.js";
import { auditEntryFrom } from "./audit-entry.js";
import { connectionResource } from "./resource.js";

/** Which connection. */
export interface DeleteConnectionInput {
  readonly application: { readonly id: string; readonly publicKey: string };
  readonly userId: string;
  readonly providerName: string;
}

/** What became of the token; `SKIPPED`: the operator did not want the provider to be told. */
export type ToldRevocation = Revocation | "SKIPPED";

/**
 * Deletes a connection, and tells the provider unless there is no way given. Undefined when there was none. Rejects with
 * RelayError STORE_UNAVAILABLE when it cannot be deleted.
 */
export async function deleteConnection(
  administration: Administration,
  { application, userId, providerName }: DeleteConnectionInput,
  provider: DisconnectOptions | "untold",
): Promise<ToldRevocation | undefined> {
  const resource = connectionResource(application.publicKey, userId, providerName);
  const audit = auditEntryFrom(administration, "ConnectionService.DeleteConnection", resource);
  const key = { applicationId: application.id, userId, providerName };
  if (provider !== "untold") return disconnect(provider, key, audit);
  const deleted = await administration.store.connections.delete(key, administration.now(), audit);
  return deleted === undefined ? undefined : "SKIPPED";
}
