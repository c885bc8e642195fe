import type { SealBinding } from "../sealing/seal.js";
import type { ConnectionKey } from "./connection.js";

/** Sealed columns of a connection. */
export type ConnectionColumn = "access_token" | "refresh_token" | "previous_refresh_token" | "id_token";

/**
 * What a connection's token is sealed for. A token that moves to another column, as a refresh token does that becomes
 * the previous one, must be opened and sealed again.
 */
export function connectionBinding(key: ConnectionKey, column: ConnectionColumn): SealBinding {
  const { applicationId, userId, providerName } = key;
  return { table: "connections", column, applicationId, userId, providerName };
}
