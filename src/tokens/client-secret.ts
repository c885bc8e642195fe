import type { StoredOAuthClient } from "./oauth-client.js";
import { openSealed } from "./open-sealed.js";
import type { Sealer } from "./seal.js";
import type { SealBinding } from "./seal-blob.js";
import { Secret } from "./secret.js";
import type { OAuthClient } from "./token-request.js";

const DOES_NOT_OPEN =
  "The stored client secret cannot be opened. The operator must restore the key file, or store the client again.";

type ClientKey = Pick<StoredOAuthClient, "applicationId" | "providerName">;

/** Seals the secret of an application's OAuth client at a provider. */
export function sealClientSecret(sealer: Sealer, key: ClientKey, clientSecret: Secret): Uint8Array {
  return sealer.seal(clientSecret.reveal(), bindingOf(key));
}

/** The client in the clear. Throws RelayError STORE_UNAVAILABLE when its secret does not open. */
export function openOAuthClient(sealer: Sealer, stored: StoredOAuthClient): OAuthClient {
  const { clientId, clientSecret } = stored;
  if (clientSecret === undefined) return { clientId, clientSecret: undefined };
  return {
    clientId,
    clientSecret: new Secret(openSealed(sealer, clientSecret, bindingOf(stored), DOES_NOT_OPEN).toString()),
  };
}

function bindingOf({ applicationId, providerName }: ClientKey): SealBinding {
  return { table: "oauth_clients", column: "client_secret", applicationId, userId: "", providerName };
}
