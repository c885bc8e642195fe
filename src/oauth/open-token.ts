import { openSealed, type Sealer } from "../sealing/seal.js";
import { Secret } from "../sealing/secret.js";
import type { ConnectionKey } from "./connection.js";
import { type ConnectionColumn, connectionBinding } from "./connection-binding.js";
import type { TokenPair } from "./revoke.js";

const DOES_NOT_OPEN =
  "This connection's stored token cannot be opened. The operator must restore the store or its key file, or the user must connect again.";

/** Opens a connection's sealed token. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openToken(sealer: Sealer, key: ConnectionKey, column: ConnectionColumn, sealed: Uint8Array): Secret {
  return new Secret(openSealed(sealer, sealed, connectionBinding(key, column), DOES_NOT_OPEN).toString());
}

/** Opens the tokens that revoking asks for. Throws as {@link openToken} does. */
export function openPair(
  sealer: Sealer,
  key: ConnectionKey,
  { accessToken, refreshToken }: Record<keyof TokenPair, Uint8Array | undefined>,
): TokenPair {
  return {
    accessToken: accessToken && openToken(sealer, key, "access_token", accessToken),
    refreshToken: refreshToken && openToken(sealer, key, "refresh_token", refreshToken),
  };
}
