/** A connection's life cycle; only stored states, the rest is derived from the times. */
export type ConnectionState = "ACTIVE" | "REAUTHORIZATION_REQUIRED";

/** Which connection: one per application, user and provider. Compared byte for byte. */
export interface ConnectionKey {
  readonly applicationId: string;
  readonly userId: string;
  /** The provider's name, never an alias. */
  readonly providerName: string;
}

/** A user's connected account at a provider. Tokens are sealed: bytes that only tokens/seal.ts opens. */
export interface Connection extends ConnectionKey {
  readonly id: string;
  readonly state: ConnectionState;
  readonly accessToken: Uint8Array;
  readonly refreshToken: Uint8Array | undefined;
  readonly idToken: Uint8Array | undefined;
  /** As the provider named it, `Bearer` in most cases. */
  readonly tokenType: string;
  /** Granted scope as the provider wrote it (RFC 6749 section 3.3); empty when unknown. */
  readonly scope: string;
  /** Values of the placeholders in a templated origin, such as `{"subdomain":"acme"}`. */
  readonly originParameters: Readonly<Record<string, string>>;
  /** When the token was obtained, milliseconds since the epoch. */
  readonly obtainedAt: number;
  /** When the access token ends, milliseconds since the epoch; undefined when the provider did not say. */
  readonly expiresAt: number | undefined;
  /** Starts at 1, grows with every change of the row. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What is written when a connection is made or made again. */
export type NewConnection = Omit<Connection, "version" | "createdAt" | "updatedAt">;

/** A page of connections, ordered by user id and provider name. */
export interface ConnectionFilter {
  readonly applicationId: string;
  readonly userId?: string;
  /** At most this many rows. */
  readonly limit: number;
}

/** Where connections are kept. Every method rejects with RelayError STORE_UNAVAILABLE when the store cannot be used. */
export interface ConnectionStore {
  find(key: ConnectionKey): Promise<Connection | undefined>;
  /** Inserts, or replaces the token set of the existing row, whose id and creation time stay and version grows. */
  put(connection: NewConnection, now: number): Promise<Connection>;
  list(filter: ConnectionFilter): Promise<Connection[]>;
  /** Resolves to false when there was none. */
  delete(key: ConnectionKey): Promise<boolean>;
}
