import { RelayError } from "../errors.js";
import type { StoredOAuthClient } from "./oauth-client.js";
import type { Sealer } from "./seal.js";
import { type SealBinding, SealError } from "./seal-blob.js";
import { Secret } from "./secret.js";
import type { OAuthClient } from "./token-request.js";

type ClientKey = Pick<StoredOAuthClient, "applicationId" | "providerName">;

/** Seals the secret of an application's OAuth client at a provider. */
export function sealClientSecret(sealer: Sealer, key: ClientKey, clientSecret: Secret): Uint8Array {
  return sealer.seal(clientSecret.reveal(), bindingOf(key));
}

/** The client in the clear. Throws RelayError STORE_UNAVAILABLE when its secret does not open. */
export function openOAuthClient(sealer: Sealer, stored: StoredOAuthClient): OAuthClient {
  const { clientId, clientSecret } = stored;
  if (clientSecret === undefined) return { clientId, clientSecret: undefined };
  try {
    return { clientId, clientSecret: new Secret(sealer.open(clientSecret, bindingOf(stored)).toString()) };
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause;
    throw new RelayError(
      "STORE_UNAVAILABLE",
      "The stored client secret cannot be opened. The operator must restore the key file, or store the client again.",
      { cause },
    );
  }
}

function bindingOf({ applicationId, providerName }: ClientKey): SealBinding {
  return { table: "oauth_clients", column: "client_secret", applicationId, userId: "", providerName };
}
