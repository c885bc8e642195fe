/** Header fields in the order they are written. */
export type HeaderPairs = ReadonlyArray<readonly [name: string, value: string]>;

/** Where a credential goes in a request. `value` is what it is made of: text with names of values in braces. */
export type Credential =
  /**
   * RFC 6750 section 2.1 and its relatives: header `name: scheme value`, or `name: value` when scheme is empty. The
   * name is lower-case. With the scheme Basic, a value with a colon is sent in base64 (RFC 7617 section 2).
   */
  | { readonly kind: "header"; readonly name: string; readonly scheme: string; readonly value: string }
  /** RFC 6750 section 2.3: a query parameter. */
  | { readonly kind: "query"; readonly parameter: string; readonly value: string };

/** What users connect with; the first one where a definition does not say. */
export const CONNECTION_KINDS = ["oauth2", "client_credentials", "jwt_bearer", "api_key", "basic", "oauth1"] as const;

/** One of {@link CONNECTION_KINDS}. */
export type ConnectionKind = (typeof CONNECTION_KINDS)[number];

/** Whether access tokens go with the calls of a kind. */
export function hasTokens(kind: ConnectionKind): boolean {
  return kind === "oauth2" || kind === "client_credentials" || kind === "jwt_bearer";
}

/**
 * Values of the kind `jwt_bearer` that nothing is made of but signatures: the key, and what opens one that is encrypted until
 * it is stored.
 */
export const KEY_VALUES = { key: "signing_key", passphrase: "passphrase" } as const;

/** A value that stands with each connection at a provider. */
export interface ConnectionValue {
  readonly name: string;
  /** For people; empty: the name says it. */
  readonly label: string;
  /** Where a user finds it; empty: nothing to say. */
  readonly help: string;
  /** Matches the whole value, as in HTML; undefined: any text. */
  readonly pattern: RegExp | undefined;
  /** Empty: there is none. */
  readonly defaultValue: string;
  /** All that it can be; empty: any text. */
  readonly choices: ReadonlyArray<{ readonly value: string; readonly label: string }>;
  /** Sealed with the connection, and never shown. */
  readonly isSecret: boolean;
  readonly isOptional: boolean;
  /** It stands in a field of a request as it is, so that it must be printable ASCII. */
  readonly isPrintable: boolean;
  /** It is a part of hosts. */
  readonly isHost: boolean;
  /** Hosts that it can be, and `*.` suffixes of them; empty: it is no whole host, or any. */
  readonly hosts: readonly string[];
  /** Dotted path of the member that holds it in the provider's key file; undefined: none does. */
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
  /** The provider's API: a member of what it answers at `url`, which may be a template. */
  | { readonly kind: "lookup"; readonly url: string; readonly member: string }
  /** The operator, with the application's OAuth client. */
  | { readonly kind: "client" };

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

/** An answer of the provider's API that means that the access token has ended; all of its members must match. */
export type ExpirySignal = {
  readonly statusCode: number;
  /** Counts only for a token that may have ended by its own account; off by default. */
  readonly pastLifetime: boolean;
} & (
  | /** The status alone says it; 400 or more. */ { readonly member: undefined }
  /** `member` is the dotted path of a member of the JSON body, `values` what it may be, as text. */
  | { readonly member: string; readonly values: ReadonlySet<string> }
);

/** OAuth 2.0 endpoints and habits (RFC 6749). */
export interface OAuth2 {
  /**
   * RFC 6749 section 3.1. Each endpoint may be a template with names of connection values in host, path and query;
   * fillEndpoint() makes the url of one connection.
   */
  readonly authorizationEndpoint: string | undefined;
  /** RFC 6749 section 3.2. */
  readonly tokenEndpoint: string | undefined;
  /** Where refresh requests go; undefined: the token endpoint. */
  readonly refreshEndpoint: string | undefined;
  /** RFC 7009. */
  readonly revocationEndpoint: string | undefined;
  /**
   * Issuer identifier (RFC 8414 section 2), a template where the endpoints are: what `iss` in an authorization response
   * must be (RFC 9207); undefined: not known.
   */
  readonly issuer: string | undefined;
  /** Whether every authorization response has `iss` (RFC 9207 section 3); off by default, as few providers promise it. */
  readonly authorizationResponseIssParameterSupported: boolean;
  /** A space by default (RFC 6749 section 3.3). */
  readonly scopeSeparator: string;
  /** Scopes to ask for when the application names none; empty: the parameter is left out. */
  readonly defaultScopes: readonly string[];
  /** What scopes let an application do, in English; of those alone that the definition says it of. */
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
  /** Parameters of it that an application may set; they count before the former. */
  readonly connectParameters: readonly string[];
  /** How token requests are encoded; `form` by default. */
  readonly tokenRequestFormat: "form" | "json";
  /** Further parameters of every token request; here and in the next two, "" leaves a parameter out. */
  readonly tokenParameters: Readonly<Record<string, string>>;
  /** Those of requests for an authorization code alone; they count before `tokenParameters` and `grant_type`. */
  readonly codeParameters: Readonly<Record<string, string>>;
  /** The same of refresh requests. */
  readonly refreshParameters: Readonly<Record<string, string>>;
  /** Dotted path of the object that holds a token response; undefined: the whole answer. */
  readonly tokenResponseMember: string | undefined;
  /** Dotted path of the error code in answers of the token endpoint; undefined: `error`. */
  readonly tokenErrorMember: string | undefined;
  /** Error codes with which a refresh token has ended, beside `invalid_grant`. */
  readonly refreshEndedErrors: ReadonlySet<string>;
  /** Access tokens last until they are revoked, unless a token response says otherwise; off by default. */
  readonly nonExpiringAccessTokens: boolean;
  /** Dotted path of the time at which a token ends; undefined: only expires_in says it. */
  readonly expiresAtMember: string | undefined;
  /** Lifetime in seconds when a token response has no expires_in; undefined: not known. */
  readonly defaultExpiresIn: number | undefined;
  /** Each refresh answers with a new refresh token and ends the old one (RFC 9700 section 4.14.2); off by default. */
  readonly refreshTokenRotation: boolean;
  /** What the kind `jwt_bearer` has. */
  readonly assertion: Assertion | undefined;
}

/** Signature algorithms of assertions (RFC 7518 section 3.1). */
export const ASSERTION_ALGORITHMS = ["RS256", "RS384", "PS256", "ES256", "ES384", "HS256"] as const;

/** A JWT that is signed for each token (RFC 7523). */
export interface Assertion {
  readonly algorithm: (typeof ASSERTION_ALGORITHMS)[number];
  /** Here and in `claims`, texts may be templates. */
  readonly header: Readonly<Record<string, string>>;
  readonly claims: Readonly<Record<string, string>>;
  /** 300 by default. */
  readonly lifetimeSeconds: number;
  readonly jti: boolean;
  /** `grant` by default. */
  readonly use: "grant" | "client_authentication" | "access_token";
}

/** Whether a provider's API takes the assertion itself, so that no token is asked for. */
export function isSelfSigned({ oauth2 }: Pick<Provider, "oauth2">): boolean {
  return oauth2?.assertion?.use === "access_token";
}

/** OAuth 1.0a endpoints and habits (RFC 5849). */
export interface OAuth1 {
  /** RFC 5849 section 2.1. Each endpoint may be a template, as those of OAuth 2.0 may; all three are there, or none is. */
  readonly temporaryCredentialEndpoint: string | undefined;
  /** RFC 5849 section 2.2. */
  readonly authorizationEndpoint: string | undefined;
  /** RFC 5849 section 2.3. */
  readonly tokenEndpoint: string | undefined;
  /** RFC 5849 section 3.4; `HMAC-SHA1` by default. */
  readonly signatureMethod: SignatureMethod;
  /** Template of the `realm` in the Authorization field (RFC 5849 section 3.5.1); empty: there is none. */
  readonly realm: string;
  /** Parameter of the authorization endpoint that takes the scope; undefined: none does. */
  readonly scopeParameter: string | undefined;
}

/** How requests are signed; the first one where a definition does not say. */
export const SIGNATURE_METHODS = ["HMAC-SHA1", "HMAC-SHA256", "PLAINTEXT"] as const;

/** One of {@link SIGNATURE_METHODS}. */
export type SignatureMethod = (typeof SIGNATURE_METHODS)[number];

/** A provider definition, parsed and checked: inside, it is trusted. */
export interface Provider {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly displayName: string;
  readonly documentationUri: string;
  /** Pages of the provider that describe its authorization and token requests. */
  readonly sources: readonly string[];
  readonly kind: ConnectionKind;
  /** Those of the definition, then parameters of `origins` that it says nothing of. */
  readonly connectionValues: readonly ConnectionValue[];
  readonly origins: readonly OriginRule[];
  /** The exact ones of `origins`, for the look-up of every call. */
  readonly exactOrigins: ReadonlySet<string>;
  /** Those of them that the URL standard writes the same: text and parser agree about them beforehand. */
  readonly plainOrigins: ReadonlySet<string>;
  /** Templates among the hosts of `origins` and of endpoints. */
  readonly hostTemplates: ReadonlyArray<Extract<OriginRule, { kind: "template" }>>;
  readonly credential: Credential;
  /** Of what else goes with each call, such as the second of two keys. */
  readonly furtherCredentials: readonly Credential[];
  /** Sent unless the call carries its own; names lower-case. Values may be templates, where `hasHeaderTemplates` says so. */
  readonly defaultHeaders: HeaderPairs;
  readonly hasHeaderTemplates: boolean;
  readonly oauth2: OAuth2 | undefined;
  /** There at the kind `oauth1`, and at no other. */
  readonly oauth1: OAuth1 | undefined;
  /** Addresses in private networks may be dialled (self-hosted providers). */
  readonly allowPrivateNetwork: boolean;
  readonly urlPlaceholders: ReadonlySet<"id_token" | "access_token">;
  /** The trace of a call is passed on (W3C Trace Context). */
  readonly passTraceContext: boolean;
  /** How the provider says that an access token has ended, where it is not a plain 401. */
  readonly expirySignals: readonly ExpirySignal[];
  readonly notes: string;
}

/** What a definition lacks for each of these, for people; nothing where it has all that is needed. */
export interface Lacks {
  /** To let users connect in a browser. */
  readonly connect: readonly string[];
  /** To refresh access tokens. */
  readonly refresh: readonly string[];
  /** To revoke tokens at the provider when a connection is deleted. */
  readonly revoke: readonly string[];
}

/** Says what a definition lacks for each capability. */
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

/** The endpoints that a definition names, of either version of OAuth, as it writes them. */
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
const OAUTH1_ENDPOINTS = ["temporaryCredentialEndpoint", "authorizationEndpoint", "tokenEndpoint"] as const;

/** Whether users of a provider connect on a page of its own; else they enter what the provider has shown them. */
export function hasOwnPage({ kind, oauth1 }: Pick<Provider, "kind" | "oauth1">): boolean {
  return kind === "oauth2" || oauth1?.authorizationEndpoint !== undefined;
}

/** Finds a provider by name or alias, exactly as written; never an object-key look-up. */
export interface ProviderCatalog {
  find(nameOrAlias: string): Provider | undefined;
  /** All of them, each parsed if it was not yet: for people who look through them, and nothing that calls wait for. */
  list(): Promise<readonly Provider[]>;
}

/** How a provider may be named, for people. */
export const PROVIDER_NAME_HINT =
  "must be 1 to 63 lower-case letters, digits, '-' and '_', and start with a letter or digit";

/** Whether a definition can have this name: none is stored for another one, and no store is asked for it. */
export function isProviderName(text: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,62}$/.test(text);
}

/** One thing that is wrong with a provider definition. */
export interface ProviderProblem {
  /** The file as the operator named it, or below a folder so named: two folders may have files of one name. */
  readonly file: string;
  /** Path of the member in the definition, such as `apiOrigins[0]`; empty for the file as a whole. */
  readonly field: string;
  readonly message: string;
}

/** Notes a problem of one file. */
export type Report = (field: string, message: string) => void;

/** Definitions that cannot be used: `message` has a line for every problem, for the operator. */
export class ProviderDefinitionError extends Error {
  readonly problems: readonly ProviderProblem[];

  constructor(problems: readonly ProviderProblem[]) {
    super(problems.map(textFromProblem).join("\n"));
    this.name = "ProviderDefinitionError";
    this.problems = problems;
  }
}

/** The problem as a line for an operator: `github.json: apiOrigins[0]: must use https`. */
export function textFromProblem({ file, field, message }: ProviderProblem): string {
  return field === "" ? `${file}: ${message}` : `${file}: ${field}: ${message}`;
}
