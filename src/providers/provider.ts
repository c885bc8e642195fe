/** Header fields in order. */
export type HeaderPairs = ReadonlyArray<readonly [name: string, value: string]>;

/** Where a credential goes in a request. `value` is its template: text with names of values in braces. */
export type Credential =
  /**
   * A header `name: scheme value`, or `name: value` if the scheme is empty (RFC 6750 section 2.1 and similar). The name
   * is lower-case. With the scheme Basic, a value with a colon is sent in base64 (RFC 7617 section 2).
   */
  | { readonly kind: "header"; readonly name: string; readonly scheme: string; readonly value: string }
  /** A query parameter (RFC 6750 section 2.3). */
  | { readonly kind: "query"; readonly parameter: string; readonly value: string };

/** What users connect with; the first kind is the default. */
export const CONNECTION_KINDS = ["oauth2", "client_credentials", "jwt_bearer", "api_key", "basic", "oauth1"] as const;

/** One of {@link CONNECTION_KINDS}. */
export type ConnectionKind = (typeof CONNECTION_KINDS)[number];

/** Whether calls of a kind carry access tokens. */
export function hasTokens(kind: ConnectionKind): boolean {
  return kind === "oauth2" || kind === "client_credentials" || kind === "jwt_bearer";
}

/**
 * Values of the kind `jwt_bearer` that are used only for signatures: the key, and the passphrase that decrypts an
 * encrypted key before it is stored.
 */
export const KEY_VALUES = { key: "signing_key", passphrase: "passphrase" } as const;

/** A value stored with each connection at a provider. */
export interface ConnectionValue {
  readonly name: string;
  /** Label for people; empty: the name is enough. */
  readonly label: string;
  /** Where a user finds the value; may be empty. */
  readonly help: string;
  /** Matches the whole value, as in HTML; undefined: any text. */
  readonly pattern: RegExp | undefined;
  /** Empty for no default. */
  readonly defaultValue: string;
  /** The only allowed values; empty: any text. */
  readonly choices: ReadonlyArray<{ readonly value: string; readonly label: string }>;
  /** Whether it is sealed with the connection and never shown. */
  readonly isSecret: boolean;
  readonly isOptional: boolean;
  /** Whether it is sent unencoded in a header field, so that it must be printable ASCII. */
  readonly isPrintable: boolean;
  /** Whether it is part of a host. */
  readonly isHost: boolean;
  /** Allowed hosts and `*.` suffixes of hosts; empty: any host, or the value is not a whole host. */
  readonly hosts: readonly string[];
  /** Dotted path of its member in the provider's key file; undefined if it is not in the file. */
  readonly keyFileMember: string | undefined;
  readonly source: ValueSource;
}

/** Where a connection value comes from. */
export type ValueSource =
  /** The user. */
  | { readonly kind: "asked" }
  /** The authorization response. */
  | { readonly kind: "callback"; readonly parameter: string }
  /** A token response: the member at a dotted path. */
  | { readonly kind: "token"; readonly member: string }
  /** The provider's API: a member of its answer at `url`, which may be a template. */
  | { readonly kind: "lookup"; readonly url: string; readonly member: string }
  /** The operator, with the application's OAuth client. */
  | { readonly kind: "client" };

/** One origin that a provider's token may be sent to. */
export type OriginRule =
  /** `https://host[:port]`, lower-case, without a default port. */
  | { readonly kind: "exact"; readonly origin: string }
  /**
   * `https://{subdomain}.example.com`: only with the parameters stored in the connection. `pattern` matches a whole
   * lower-case origin and captures the parameters in order.
   */
  | {
      readonly kind: "template";
      readonly template: string;
      readonly parameters: readonly string[];
      readonly pattern: RegExp;
    };

/** An answer of the provider's API that means that the access token is no longer valid; all members must match. */
export type ExpirySignal = {
  readonly statusCode: number;
  /** Counts only for a token that may have expired by its own lifetime; off by default. */
  readonly pastLifetime: boolean;
} & (
  | /** The status alone is the signal; 400 or more. */ { readonly member: undefined }
  /** `member` is the dotted path of a member of the JSON body, `values` its expected values as text. */
  | { readonly member: string; readonly values: ReadonlySet<string> }
);

/** Longest lifetime of an access token that a definition or a token response may set, in seconds: 365 days. */
export const MAX_EXPIRES_IN_S: number = 365 * 24 * 60 * 60;

/** A provider's OAuth 2.0 endpoints and behaviour (RFC 6749). */
export interface OAuth2 {
  /**
   * RFC 6749 section 3.1. Each endpoint may be a template with names of connection values in host, path and query;
   * fillEndpoint() fills it for one connection.
   */
  readonly authorizationEndpoint: string | undefined;
  /** RFC 6749 section 3.2. */
  readonly tokenEndpoint: string | undefined;
  /** Where refresh requests go; undefined: the token endpoint. */
  readonly refreshEndpoint: string | undefined;
  /** RFC 7009. */
  readonly revocationEndpoint: string | undefined;
  /**
   * Issuer identifier (RFC 8414 section 2), which `iss` in an authorization response must equal (RFC 9207). May be a
   * template, as the endpoints may; undefined if not known.
   */
  readonly issuer: string | undefined;
  /**
   * Whether every authorization response has `iss` (RFC 9207 section 3); off by default, as few providers promise it.
   */
  readonly authorizationResponseIssParameterSupported: boolean;
  /** A space by default (RFC 6749 section 3.3). */
  readonly scopeSeparator: string;
  /** Scopes to request when the application names none; if empty, the parameter is omitted. */
  readonly defaultScopes: readonly string[];
  /** What a scope lets an application do, in English; only for scopes that the definition describes. */
  readonly scopeDescriptions: Readonly<Record<string, string>>;
  /** Whether to use PKCE (RFC 7636); off by default. */
  readonly pkce: boolean;
  /** RFC 7591 section 2; `client_secret_basic` by default. */
  readonly clientAuthentication: "client_secret_basic" | "client_secret_post" | "none";
  /** Basic without the form-encoding of RFC 6749 section 2.3.1; off by default. */
  readonly rawClientSecretBasic: boolean;
  /** Name of the client_id parameter in every request; `client_id` by default. */
  readonly clientIdParameter: string;
  /** Further parameters of the authorization request. */
  readonly authorizationParameters: Readonly<Record<string, string>>;
  /** Parameters of the authorization request that an application may set; they override `authorizationParameters`. */
  readonly connectParameters: readonly string[];
  /** How token requests are encoded; `form` by default. */
  readonly tokenRequestFormat: "form" | "json";
  /** Further parameters of every token request; here and in the next two, "" omits a parameter. */
  readonly tokenParameters: Readonly<Record<string, string>>;
  /** Parameters of authorization code requests only; they override `tokenParameters` and `grant_type`. */
  readonly codeParameters: Readonly<Record<string, string>>;
  /** Parameters of refresh requests only; likewise. */
  readonly refreshParameters: Readonly<Record<string, string>>;
  /** Dotted path of the token response within the answer; undefined: the whole answer. */
  readonly tokenResponseMember: string | undefined;
  /** Dotted path of the error code in answers of the token endpoint; undefined: `error`. */
  readonly tokenErrorMember: string | undefined;
  /** Error codes that mean that the refresh token is no longer valid, in addition to `invalid_grant`. */
  readonly refreshEndedErrors: ReadonlySet<string>;
  /** Whether access tokens last until revoked, unless a token response says otherwise; off by default. */
  readonly nonExpiringAccessTokens: boolean;
  /** Dotted path of the time at which a token expires; undefined: only expires_in counts. */
  readonly expiresAtMember: string | undefined;
  /** Lifetime in seconds when a token response has no expires_in; undefined if not known. */
  readonly defaultExpiresIn: number | undefined;
  /** Whether a refresh replaces the refresh token and ends the old one (RFC 9700 section 4.14.2); off by default. */
  readonly refreshTokenRotation: boolean;
  /** Only for the kind `jwt_bearer`. */
  readonly assertion: Assertion | undefined;
}

/** Signature algorithms of assertions (RFC 7518 section 3.1). */
export const ASSERTION_ALGORITHMS = ["RS256", "RS384", "PS256", "ES256", "ES384", "HS256"] as const;

/** A JWT that is signed for each token (RFC 7523). */
export interface Assertion {
  readonly algorithm: (typeof ASSERTION_ALGORITHMS)[number];
  /** Header parameters; here and in `claims`, values may be templates. */
  readonly header: Readonly<Record<string, string>>;
  readonly claims: Readonly<Record<string, string>>;
  /** 300 by default. */
  readonly lifetimeSeconds: number;
  readonly jti: boolean;
  /** `grant` by default. */
  readonly use: "grant" | "client_authentication" | "access_token";
}

/** Whether a provider's API accepts the assertion itself, so that no token is requested. */
export function isSelfSigned({ oauth2 }: Pick<Provider, "oauth2">): boolean {
  return oauth2?.assertion?.use === "access_token";
}

/** A provider's OAuth 1.0a endpoints and behaviour (RFC 5849). */
export interface OAuth1 {
  /** RFC 5849 section 2.1. Each endpoint may be a template, as in OAuth 2.0. Either all three are defined or none. */
  readonly temporaryCredentialEndpoint: string | undefined;
  /** RFC 5849 section 2.2. */
  readonly authorizationEndpoint: string | undefined;
  /** RFC 5849 section 2.3. */
  readonly tokenEndpoint: string | undefined;
  /** RFC 5849 section 3.4; `HMAC-SHA1` by default. */
  readonly signatureMethod: SignatureMethod;
  /** Template of the `realm` in the Authorization field (RFC 5849 section 3.5.1); empty for none. */
  readonly realm: string;
  /** Parameter of the authorization endpoint that takes the scope; undefined for none. */
  readonly scopeParameter: string | undefined;
}

/** How requests are signed; the first method is the default. */
export const SIGNATURE_METHODS = ["HMAC-SHA1", "HMAC-SHA256", "PLAINTEXT"] as const;

/** One of {@link SIGNATURE_METHODS}. */
export type SignatureMethod = (typeof SIGNATURE_METHODS)[number];

/** A provider definition, parsed and checked; trusted from here on. */
export interface Provider {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly displayName: string;
  readonly documentationUri: string;
  /** Pages of the provider that describe its authorization and token requests. */
  readonly sources: readonly string[];
  readonly kind: ConnectionKind;
  /** Values of the definition, then parameters of `origins` that it does not describe. */
  readonly connectionValues: readonly ConnectionValue[];
  readonly origins: readonly OriginRule[];
  /** The exact entries of `origins`, for the look-up in every call. */
  readonly exactOrigins: ReadonlySet<string>;
  /** The exact origins in the URL standard's canonical form, on which text and URL parser always agree. */
  readonly plainOrigins: ReadonlySet<string>;
  /** Templated hosts of `origins` and endpoints. */
  readonly hostTemplates: ReadonlyArray<Extract<OriginRule, { kind: "template" }>>;
  readonly credential: Credential;
  /** Further credentials of each call, such as the second of two keys. */
  readonly furtherCredentials: readonly Credential[];
  /** Sent unless the call sets its own; names lower-case. Values may be templates if `hasHeaderTemplates` is true. */
  readonly defaultHeaders: HeaderPairs;
  readonly hasHeaderTemplates: boolean;
  readonly oauth2: OAuth2 | undefined;
  /** Defined for the kind `oauth1` only. */
  readonly oauth1: OAuth1 | undefined;
  /** Whether addresses in private networks may be dialled (self-hosted providers). */
  readonly allowPrivateNetwork: boolean;
  readonly urlPlaceholders: ReadonlySet<"id_token" | "access_token">;
  /** Whether the trace of a call is passed on (W3C Trace Context). */
  readonly passTraceContext: boolean;
  /** How the provider says that an access token is no longer valid, other than with a plain 401. */
  readonly expirySignals: readonly ExpirySignal[];
  readonly notes: string;
}

/** What a definition lacks for each capability, as text for people; empty where nothing is missing. */
export interface Lacks {
  /** To let users connect in a browser. */
  readonly connect: readonly string[];
  /** To refresh access tokens. */
  readonly refresh: readonly string[];
  /** To revoke tokens at the provider when a connection is deleted. */
  readonly revoke: readonly string[];
}

/** Finds what a definition lacks for each capability. */
export function lacksOf({ kind, oauth2 }: Provider): Lacks {
  if (!hasTokens(kind)) {
    const what = kind === "oauth1" ? "tokens" : "keys";
    return {
      connect: [],
      refresh: [`nothing to refresh: ${what} do not expire`],
      revoke: [`${what} ${REVOKED_THERE}`],
    };
  }
  if (isSelfSigned({ oauth2 })) return { connect: [], refresh: [], revoke: [`keys ${REVOKED_THERE}`] };
  const { authorizationEndpoint, tokenEndpoint, refreshEndpoint, revocationEndpoint } = oauth2 ?? {};
  const missing = (field: string, value: string | undefined) =>
    value === undefined ? [`oauth2.${field} is missing`] : [];
  const token = missing("tokenEndpoint", tokenEndpoint);
  const endless = oauth2?.nonExpiringAccessTokens ? ["nothing to refresh: access tokens do not expire"] : [];
  return {
    connect: [...(kind === "oauth2" ? missing("authorizationEndpoint", authorizationEndpoint) : []), ...token],
    refresh: endless.length > 0 ? endless : missing("tokenEndpoint", refreshEndpoint ?? tokenEndpoint),
    revoke: missing("revocationEndpoint", revocationEndpoint),
  };
}

const REVOKED_THERE = "are revoked at the provider";

/** The OAuth 1 and OAuth 2 endpoints of a definition, as written there. */
export function endpointsOf(definition: {
  readonly oauth2?: Partial<Pick<OAuth2, (typeof OAUTH2_ENDPOINTS)[number]>> | undefined;
  readonly oauth1?: Partial<Pick<OAuth1, (typeof OAUTH1_ENDPOINTS)[number]>> | undefined;
}): readonly string[] {
  const { oauth2 = {}, oauth1 = {} } = definition;
  return [
    ...OAUTH2_ENDPOINTS.flatMap((field) => oauth2[field] || []),
    ...OAUTH1_ENDPOINTS.flatMap((field) => oauth1[field] || []),
  ];
}

const OAUTH2_ENDPOINTS = ["authorizationEndpoint", "tokenEndpoint", "refreshEndpoint", "revocationEndpoint"] as const;
export const OAUTH1_ENDPOINTS = ["temporaryCredentialEndpoint", "authorizationEndpoint", "tokenEndpoint"] as const;

/** Whether users connect on the provider's own page; otherwise they enter credentials that the provider showed them. */
export function hasOwnPage({ kind, oauth1 }: Pick<Provider, "kind" | "oauth1">): boolean {
  return kind === "oauth2" || oauth1?.authorizationEndpoint !== undefined;
}

/** Finds a provider by name or alias, exactly as written; not a look-up in a plain object. */
export interface ProviderCatalog {
  find(nameOrAlias: string): Provider | undefined;
  /** All providers, which parses those not parsed yet. For listings only, not on the path of a call. */
  list(): Promise<readonly Provider[]>;
}

/**
 * All names of a provider; the given one alone where the catalogue has none. What was stored under a former name still
 * has that, which may be an alias by now.
 */
export function namesOf(catalog: Pick<ProviderCatalog, "find">, nameOrAlias: string): readonly string[] {
  const { name, aliases } = catalog.find(nameOrAlias) ?? { name: nameOrAlias, aliases: [] };
  return [name, ...aliases];
}

/** The rule for provider names, as text for people. */
export const PROVIDER_NAME_HINT =
  "must be 1 to 63 lower-case letters, digits, '-' and '_', and start with a letter or digit";

/**
 * Whether a text is a valid provider name. Nothing is stored under any other name, so stores are not queried for one.
 */
export function isProviderName(text: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,62}$/.test(text);
}

/** One problem of a provider definition. */
export interface ProviderProblem {
  /**
   * Path of the file as the operator gave it, or within the folder given: two folders may have files of the same name.
   */
  readonly file: string;
  /** Path of the member in the definition, such as `apiOrigins[0]`; empty for the file as a whole. */
  readonly field: string;
  readonly message: string;
}

/** Reports a problem of one file. */
export type Report = (field: string, message: string) => void;

/** Definitions that cannot be used; `message` has one line per problem, for the operator. */
export class ProviderDefinitionError extends Error {
  readonly problems: readonly ProviderProblem[];

  constructor(problems: readonly ProviderProblem[]) {
    super(problems.map(textFromProblem).join("\n"));
    this.name = "ProviderDefinitionError";
    this.problems = problems;
  }
}

/** A problem as a line for the operator: `github.json: apiOrigins[0]: must use https`. */
export function textFromProblem({ file, field, message }: ProviderProblem): string {
  return field === "" ? `${file}: ${message}` : `${file}: ${field}: ${message}`;
}
