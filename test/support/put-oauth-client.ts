import type { OAuthClientStore, StoredOAuthClient } from "../../src/oauth/oauth-client.js";

/** Inserts a client, or replaces the one of the same application and provider. */
export async function putOAuthClient(clients: OAuthClientStore, client: StoredOAuthClient): Promise<void> {
  await clients.change(client.applicationId, client.providerName, () => client);
}
