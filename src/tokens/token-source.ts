import { RelayError } from "../errors.js";
import type { Connection } from "./connection.js";
import { type ConnectionColumn, connectionBinding } from "./connection-binding.js";
import type { Sealer } from "./seal.js";
import { SealError } from "./seal-blob.js";
import { Secret } from "./secret.js";

/** Where a call gets a connection's tokens in the clear. */
export interface TokenSource {
  /**
   * The access token to send now. Rejects with RelayError REAUTHORIZATION_REQUIRED when only the user can help,
   * REFRESH_UNAVAILABLE when the token is expired and cannot be renewed now, STORE_UNAVAILABLE when it does not open.
   */
  accessToken(connection: Connection): Promise<Secret>;
  /** The ID token (OpenID Connect Core section 2); undefined when the provider gave none. */
  idToken(connection: Connection): Promise<Secret | undefined>;
}

/** What a token source needs; the one that renews tokens will be a further member. */
export interface TokenSourceOptions {
  readonly sealer: Sealer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Opens the stored tokens. A token is opened only when the connection's state and times allow its use. */
export function createTokenSource({ sealer, now }: TokenSourceOptions): TokenSource {
  return {
    async accessToken(connection) {
      requireUsable(connection);
      requireFresh(connection, now());
      return openToken(sealer, connection, "access_token", connection.accessToken);
    },
    async idToken(connection) {
      requireUsable(connection);
      return connection.idToken && openToken(sealer, connection, "id_token", connection.idToken);
    },
  };
}

function requireUsable({ state }: Connection): void {
  if (state === "ACTIVE") return;
  throw new RelayError(
    "REAUTHORIZATION_REQUIRED",
    "The provider no longer accepts this user's connection. The user must connect again.",
  );
}

function requireFresh({ expiresAt, refreshToken }: Connection, nowMs: number): void {
  if (expiresAt === undefined || expiresAt > nowMs) return;
  if (refreshToken === undefined) {
    throw new RelayError(
      "REAUTHORIZATION_REQUIRED",
      "This user's access token is expired and there is no refresh token. The user must connect again.",
    );
  }
  throw new RelayError(
    "REFRESH_UNAVAILABLE",
    "This user's access token is expired and cannot be renewed right now. Try again later.",
  );
}

function openToken(sealer: Sealer, connection: Connection, column: ConnectionColumn, sealed: Uint8Array): Secret {
  try {
    return new Secret(sealer.open(sealed, connectionBinding(connection, column)).toString());
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause;
    throw new RelayError(
      "STORE_UNAVAILABLE",
      "This connection's stored token cannot be opened. The operator must restore the store or its key file, or the user must connect again.",
      { cause },
    );
  }
}
