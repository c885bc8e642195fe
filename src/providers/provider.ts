/** Header fields in the order they are written. */
export type HeaderPairs = ReadonlyArray<readonly [name: string, value: string]>;

/** Where the access token goes in a request. */
export type Credential =
  /**
   * RFC 6750 section 2.1 and its relatives: header `name: scheme token`, or `name: token` when scheme is empty. The
   * name is lower-case.
   */
  | { readonly kind: "header"; readonly name: string; readonly scheme: string }
  /** RFC 6750 section 2.3: a query parameter. */
  | { readonly kind: "query"; readonly parameter: string };

/** One place a provider's token may go. */
export type OriginRule =
  /** `https://host[:port]`, lower-case, default port left out. */
  | { readonly kind: "exact"; readonly origin: string }
  /**
   * `https://{subdomain}.example.com`: only with the parameters stored in the connection. `pattern` matches a whole
   * origin, lower-case, and captures the parameters in their order.
   */
  | {
      readonly kind: "template";
      readonly template: string;
      readonly parameters: readonly string[];
      readonly pattern: RegExp;
    };

/** OAuth 2.0 endpoints and habits (RFC 6749). */
export interface OAuth2 {
  readonly authorizationEndpoint: string | undefined;
  readonly tokenEndpoint: string | undefined;
  readonly revocationEndpoint: string | undefined;
  readonly scopeSeparator: string;
  readonly pkce: boolean;
  readonly clientAuthentication: "client_secret_basic" | "client_secret_post" | "none";
  readonly authorizationParameters: Readonly<Record<string, string>>;
}

/** A provider definition, parsed and checked: inside, it is trusted. */
export interface Provider {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly displayName: string;
  readonly documentationUri: string;
  readonly origins: readonly OriginRule[];
  /** The exact ones of `origins`, for the look-up of every call. */
  readonly exactOrigins: ReadonlySet<string>;
  readonly credential: Credential;
  /** Sent unless the call carries its own; names lower-case. */
  readonly defaultHeaders: HeaderPairs;
  readonly oauth2: OAuth2 | undefined;
  /** Addresses in private networks may be dialled (self-hosted providers). */
  readonly allowPrivateNetwork: boolean;
  readonly urlPlaceholders: ReadonlySet<"id_token" | "access_token">;
  readonly notes: string;
}

/** Finds a provider by name or alias, exactly as written; never an object-key look-up. */
export interface ProviderCatalog {
  find(nameOrAlias: string): Provider | undefined;
  list(): readonly Provider[];
}
