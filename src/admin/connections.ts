import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import type { Connection } from "../oauth/connection.js";
import { type DisconnectOptions, disconnect } from "../oauth/disconnect.js";
import { newConnectionFrom } from "../oauth/new-connection.js";
import type { Revocation } from "../oauth/revoke.js";
import type { TokenResponse } from "../oauth/token-response.js";
import type { Provider } from "../providers/provider.js";
import { type Administration, auditEntryFrom, connectionResource } from "./administration.js";

/** Whose connection, at which provider, with what. */
export interface PutConnectionInput {
  readonly application: Application;
  readonly userId: string;
  readonly provider: Provider;
  readonly originParameters: Readonly<Record<string, string>>;
  readonly response: TokenResponse;
}

/** Seals the tokens and stores the connection; one that exists gets the new tokens. */
export async function putConnection(
  administration: Administration,
  { application, userId, provider, originParameters, response }: PutConnectionInput,
): Promise<Connection> {
  const { store, sealer, now } = administration;
  const at = now();
  const connection = newConnectionFrom(sealer, {
    id: randomUUID(),
    key: { applicationId: application.id, userId, providerName: provider.name },
    response,
    defaultExpiresInS: provider.oauth2?.defaultExpiresIn,
    originParameters,
    obtainedAt: at,
  });
  const resource = connectionResource(application.publicKey, userId, provider.name);
  const fields = ["token_response", "origin_parameters"];
  const audit = auditEntryFrom(administration, "ConnectionService.PutConnection", resource, fields);
  return store.connections.put(connection, at, audit);
}

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
