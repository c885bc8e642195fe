import type { AuditEntry } from "../model/audit.js";
import { isProviderName } from "../providers/provider.js";
import { findAuthorizationServer } from "./authorization-server.js";
import type { Connection, ConnectionKey } from "./connection.js";
import { openToken } from "./open-token.js";
import type { AuthorizationOptions } from "./options.js";
import { type Revocation, revoke, type TokenPair } from "./revoke.js";

/** What ending a connection needs. */
export type DisconnectOptions = Pick<
  AuthorizationOptions,
  "catalog" | "connections" | "oauthClients" | "sealer" | "send" | "now" | "onEvent" | "onFault"
>;

/**
 * Ends a connection: deletes it, and then revokes its token where the provider can (RFC 7009). The token is used no
 * more from the first moment on, whatever the provider answers. Undefined when there was no connection. Rejects with
 * RelayError STORE_UNAVAILABLE when it cannot be deleted.
 *
 * @param audit where an operator asked for it.
 */
export async function disconnect(
  options: DisconnectOptions,
  key: ConnectionKey,
  audit?: AuditEntry,
): Promise<Revocation | undefined> {
  // There is none of another name, and PostgreSQL takes no text with a NUL in it.
  if (!isProviderName(key.providerName)) return undefined;
  const deleted = await options.connections.delete(key, options.now(), audit);
  if (deleted === undefined) return undefined;
  const revocation = await revokeTokens(options, deleted);
  const { applicationId, providerName: provider } = key;
  options.onEvent({ what: "disconnect", applicationId, provider, outcome: revocation.toLowerCase() });
  return revocation;
}

/** Never rejects: a connection that is deleted stays so, and whoever asked for that hears how the rest went. */
async function revokeTokens(options: DisconnectOptions, connection: Connection): Promise<Revocation> {
  if (options.catalog.find(connection.providerName)?.oauth2?.revocationEndpoint === undefined) return "NOT_SUPPORTED";
  try {
    const server = await findAuthorizationServer(options, connection);
    if (server?.revocationEndpoint === undefined) return "FAILED";
    return await revoke(options.send, server, tokensOf(options, connection));
  } catch (error) {
    options.onFault("revocation", error);
    return "FAILED";
  }
}

function tokensOf({ sealer }: DisconnectOptions, connection: Connection): TokenPair {
  const { accessToken, refreshToken } = connection;
  return {
    accessToken: openToken(sealer, connection, "access_token", accessToken),
    refreshToken: refreshToken && openToken(sealer, connection, "refresh_token", refreshToken),
  };
}
