import { randomUUID } from "node:crypto";
import type { Application } from "../applications/application.js";
import type { Provider } from "../providers/provider.js";
import type { Connection } from "../tokens/connection.js";
import { newConnectionFrom } from "../tokens/new-connection.js";
import type { TokenResponse } from "../tokens/token-response.js";
import type { OpenStore } from "./open-store.js";

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
  { store, sealer }: Pick<OpenStore, "store" | "sealer">,
  { application, userId, provider, originParameters, response }: PutConnectionInput,
): Promise<Connection> {
  const key = { applicationId: application.id, userId, providerName: provider.name };
  const now = Date.now();
  const defaultExpiresInS = provider.oauth2?.defaultExpiresIn;
  const input = { id: randomUUID(), key, response, defaultExpiresInS, originParameters, obtainedAt: now };
  return store.connections.put(newConnectionFrom(sealer, input), now);
}
