import type { Sealer } from "../sealing/seal.js";
import type { Secret } from "../sealing/secret.js";
import type { ConnectionKey, NewConnection } from "./connection.js";
import { type ConnectionColumn, connectionBinding } from "./connection-binding.js";
import { expiresAtFrom, type TokenResponse } from "./token-response.js";

/** What a connection is made from. */
interface NewConnectionInput {
  /** A new random id; an existing connection of this key keeps its own. */
  readonly id: string;
  readonly key: ConnectionKey;
  readonly response: TokenResponse;
  /** Seconds to assume when the response has no expires_in; undefined: unknown. */
  readonly defaultExpiresInS: number | undefined;
  readonly originParameters: Readonly<Record<string, string>>;
  /** When the token was asked for, milliseconds since the epoch: the lifetime counts from there (threats 3.7). */
  readonly obtainedAt: number;
}

/** Seals the tokens of a token response into what the store keeps. */
export function newConnectionFrom(sealer: Sealer, input: NewConnectionInput): NewConnection {
  const { id, key, response, defaultExpiresInS, originParameters, obtainedAt } = input;
  const seal = (token: Secret, column: ConnectionColumn) => sealer.seal(token.reveal(), connectionBinding(key, column));
  return {
    id,
    applicationId: key.applicationId,
    userId: key.userId,
    providerName: key.providerName,
    state: "ACTIVE",
    accessToken: seal(response.accessToken, "access_token"),
    refreshToken: response.refreshToken && seal(response.refreshToken, "refresh_token"),
    idToken: response.idToken && seal(response.idToken, "id_token"),
    tokenType: response.tokenType,
    scope: response.scope,
    originParameters,
    obtainedAt,
    expiresAt: expiresAtFrom(response, defaultExpiresInS, obtainedAt),
  };
}
