import type { AuditEntry } from "../audit.js";
import type { Connection, ConnectionKey } from "../tokens/connection.js";
import { openToken } from "../tokens/open-token.js";
import { tokenRequestFrom } from "../tokens/token-request.js";
import { type AuthorizationServer, findAuthorizationServer } from "./authorization-server.js";
import type { AuthorizationOptions } from "./options.js";

/** What became of a deleted connection's token at the provider. */
export type Revocation = "REVOKED" | "NOT_SUPPORTED" | "FAILED";

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
  const deleted = await options.connections.delete(key, options.now(), audit);
  if (deleted === undefined) return undefined;
  const revocation = await revoke(options, deleted);
  const { applicationId, providerName: provider } = key;
  options.onEvent({ what: "disconnect", applicationId, provider, outcome: revocation.toLowerCase() });
  return revocation;
}

/** Never rejects: a connection that is deleted stays so, and whoever asked for that hears how the rest went. */
async function revoke(options: DisconnectOptions, connection: Connection): Promise<Revocation> {
  if (options.catalog.find(connection.providerName)?.oauth2?.revocationEndpoint === undefined) return "NOT_SUPPORTED";
  try {
    const server = await findAuthorizationServer(options, connection);
    if (server?.revocationEndpoint === undefined) return "FAILED";
    const { statusCode } = await options.send(
      { ...server, tokenEndpoint: server.revocationEndpoint },
      revocationRequestFrom(options, connection, server),
    );
    return statusCode >= 200 && statusCode < 300 ? "REVOKED" : "FAILED";
  } catch (error) {
    options.onFault("revocation", error);
    return "FAILED";
  }
}

/** RFC 7009 section 2.1. The refresh token where there is one: the access tokens that it gave end with it. */
function revocationRequestFrom({ sealer }: DisconnectOptions, connection: Connection, server: AuthorizationServer) {
  const [token, hint] =
    connection.refreshToken === undefined
      ? [openToken(sealer, connection, "access_token", connection.accessToken), "access_token"]
      : [openToken(sealer, connection, "refresh_token", connection.refreshToken), "refresh_token"];
  // What a definition adds to token requests means nothing here.
  return tokenRequestFrom(server.client, { ...server, tokenParameters: {} }, [
    ["token", token.reveal()],
    ["token_type_hint", hint],
  ]);
}
