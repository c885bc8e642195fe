import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import type { Provider } from "../providers/provider.js";
import type { Connection } from "../tokens/connection.js";
import { newConnectionFrom } from "../tokens/new-connection.js";
import type { TokenResponse } from "../tokens/token-response.js";
import type { Administration } from "./administration.js";
import { auditEntryFrom } from "./audit-entry.js";
import { connectionResource } from "./resource.js";

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
