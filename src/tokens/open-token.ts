import { RelayError } from "../errors.js";
import type { ConnectionKey } from "./connection.js";
import { type ConnectionColumn, connectionBinding } from "./connection-binding.js";
import type { Sealer } from "./seal.js";
import { SealError } from "./seal-blob.js";
import { Secret } from "./secret.js";

/** Opens a connection's sealed token. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openToken(sealer: Sealer, key: ConnectionKey, column: ConnectionColumn, sealed: Uint8Array): Secret {
  try {
    return new Secret(sealer.open(sealed, connectionBinding(key, column)).toString());
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause;
    throw new RelayError(
      "STORE_UNAVAILABLE",
      "This connection's stored token cannot be opened. The operator must restore the store or its key file, or the user must connect again.",
      { cause },
    );
  }
}
