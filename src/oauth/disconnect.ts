import type { AuditEntry } from "../model/audit.js";
import { RelayError } from "../model/errors.js";
import { isProviderName } from "../providers/provider.js";
import {
  type AuthorizationOptions,
  type AuthorizationServer,
  findAuthorizationServer,
} from "./authorization-server.js";
import { type ConnectionKey, type DeletedConnection, UnconfirmedDeletionError } from "./connection.js";
import { openPair, openToken } from "./store-answer.js";
import { type Revocation, revoke } from "./token-endpoint.js";

/** What disconnecting needs. */
export type DisconnectOptions = Pick<
  AuthorizationOptions,
  "catalog" | "connections" | "oauthClients" | "sealer" | "send" | "now" | "onEvent" | "onFault"
>;

/**
 * Deletes a connection, then revokes its tokens if the provider supports that (RFC 7009). The tokens are not used any
 * more from the deletion on, whatever the provider answers. Resolves to undefined when there was no connection. Rejects
 * with RelayError STORE_UNAVAILABLE when it cannot be deleted; if it may have been deleted, the tokens are revoked.
 *
 * @param audit given when an operator asked for it.
 */
export async function disconnect(
  options: DisconnectOptions,
  key: ConnectionKey,
  audit?: AuditEntry,
): Promise<Revocation | undefined> {
  // No connection has an invalid name, and PostgreSQL rejects text with a NUL in it.
  if (!isProviderName(key.providerName)) return undefined;
  const deleted = await options.connections.delete(key, options.now(), audit).catch(async (error: unknown) => {
    // The user wants it gone, and if it is, nobody else has these tokens: the next try would find nothing to revoke.
    if (error instanceof UnconfirmedDeletionError) await revokeTokens(options, error.deleted);
    throw error;
  });
  if (deleted === undefined) return undefined;
  const revocation = await revokeTokens(options, deleted);
  const { applicationId, providerName: provider } = key;
  options.onEvent({ what: "disconnect", applicationId, provider, outcome: revocation.toLowerCase() });
  return revocation;
}

/** Never rejects: the connection stays deleted, and the caller is told how the revocation went. */
async function revokeTokens(options: DisconnectOptions, connection: DeletedConnection): Promise<Revocation> {
  if (options.catalog.find(connection.providerName)?.oauth2?.revocationEndpoint === undefined) return "NOT_SUPPORTED";
  const failed = (error: unknown) => {
    options.onFault("revocation", error);
    return "FAILED" as const;
  };
  try {
    const server = await findAuthorizationServer(options, connection);
    if (server instanceof RelayError || server.revocationEndpoint === undefined) return "FAILED";
    // A refresh token that came too late may be the only one that the provider still knows.
    const late = await revokeLate(options, connection, server).catch(failed);
    // For a grant kind, the refresh token column holds secret values, not a token.
    const tokens = server.grant === undefined ? connection : { ...connection, refreshToken: undefined };
    const own = await revoke(options.send, server, openPair(options.sealer, connection, tokens));
    return late === "FAILED" ? late : own;
  } catch (error) {
    return failed(error);
  }
}

async function revokeLate(
  { sealer, send }: DisconnectOptions,
  connection: DeletedConnection,
  server: AuthorizationServer,
): Promise<Revocation | undefined> {
  const { previousRefreshToken } = connection;
  if (previousRefreshToken === undefined) return undefined;
  const refreshToken = openToken(sealer, connection, "previous_refresh_token", previousRefreshToken);
  return revoke(send, server, { accessToken: undefined, refreshToken });
}
