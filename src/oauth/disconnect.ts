import type { AuditEntry } from "../model/audit.js";
import { isProviderName } from "../providers/provider.js";
import { type AuthorizationOptions, findAuthorizationServer } from "./authorization-server.js";
import type { ConnectionKey, DeletedConnection } from "./connection.js";
import { openPair, openToken } from "./store-answer.js";
import { type Revocation, revoke } from "./token-request.js";

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
async function revokeTokens(options: DisconnectOptions, connection: DeletedConnection): Promise<Revocation> {
  if (options.catalog.find(connection.providerName)?.oauth2?.revocationEndpoint === undefined) return "NOT_SUPPORTED";
  try {
    const server = await findAuthorizationServer(options, connection);
    if (server?.revocationEndpoint === undefined) return "FAILED";
    const { sealer, send } = options;
    const { previousRefreshToken } = connection;
    // One that came too late may be the only one that the provider still knows.
    const late = previousRefreshToken && openToken(sealer, connection, "previous_refresh_token", previousRefreshToken);
    if (late !== undefined) await revoke(send, server, { accessToken: undefined, refreshToken: late });
    // What the relay gets tokens for is no token.
    const tokens = server.grant === undefined ? connection : { ...connection, refreshToken: undefined };
    return await revoke(send, server, openPair(sealer, connection, tokens));
  } catch (error) {
    options.onFault("revocation", error);
    return "FAILED";
  }
}
