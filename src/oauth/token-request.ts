import { RelayError } from "../model/errors.js";
import type { OAuth2 } from "../providers/provider.js";
import type { Secret } from "../sealing/seal.js";

/** The application's registration at a provider (RFC 6749 section 2). */
export interface OAuthClient {
  /** Empty: the provider identifies the client by its signature. */
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: Secret | undefined;
}

/** The part of a provider's definition that shapes every token request. */
type TokenEndpointHabits = Pick<
  OAuth2,
  "clientAuthentication" | "clientIdParameter" | "rawClientSecretBasic" | "tokenRequestFormat" | "tokenParameters"
>;

/** The part that shapes a request with an authorization code. */
export type CodeHabits = TokenEndpointHabits & Pick<OAuth2, "codeParameters">;

/** The part that shapes a refresh request. */
export type RefreshHabits = TokenEndpointHabits & Pick<OAuth2, "refreshParameters">;

/** The parameters that redeem an authorization code. */
export interface CodeGrant {
  readonly code: Secret;
  /** The same as in the authorization request. */
  readonly redirectUri: string;
  /** Undefined without PKCE. */
  readonly codeVerifier: Secret | undefined;
}

/** A token request as it is sent. Holds secrets: never log it. */
export interface TokenRequest {
  /** Flat list name, value, …. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  /** POST by default. */
  readonly method?: "GET" | "POST";
}

/** Nothing of the token request left the relay: the code or refresh token in it is unspent. */
export class TokenRequestNotSentError extends RelayError {
  constructor({ reason, message, cause }: RelayError) {
    super(reason, message, { cause });
    this.name = "TokenRequestNotSentError";
  }
}

/** Builds the request that redeems an authorization code (RFC 6749 section 4.1.3, RFC 7636 section 4.5). */
export function codeRequestFrom(client: OAuthClient, grant: CodeGrant, habits: CodeHabits): TokenRequest {
  const { code, redirectUri, codeVerifier } = grant;
  const parameters = {
    grant_type: "authorization_code",
    code: code.reveal(),
    redirect_uri: redirectUri,
    code_verifier: codeVerifier?.reveal() ?? "",
  };
  return tokenRequestFrom(client, habits, parameters, habits.codeParameters);
}

/** Builds a refresh request (RFC 6749 section 6), without a scope, so that the granted one stays. */
export function refreshRequestFrom(client: OAuthClient, refreshToken: Secret, habits: RefreshHabits): TokenRequest {
  const parameters = { grant_type: "refresh_token", refresh_token: refreshToken.reveal() };
  return tokenRequestFrom(client, habits, parameters, habits.refreshParameters);
}

/** Builds a request that revokes a token (RFC 7009 section 2.1). */
export function revocationRequestFrom(
  client: OAuthClient,
  token: Secret,
  hint: "access_token" | "refresh_token",
  habits: TokenEndpointHabits,
): TokenRequest {
  const parameters = { token: token.reveal(), token_type_hint: hint };
  // The definition's extra parameters are for token requests, not for revocations.
  return tokenRequestFrom(client, { ...habits, tokenParameters: {} }, parameters);
}

/** RFC 6755. */
const URN = "urn:ietf:params:oauth";

/**
 * Builds a request for a client's own tokens (RFC 6749 section 4.4.2).
 *
 * @param scope empty: the parameter is left out.
 * @param signed an assertion, as the grant (RFC 7523 section 2.1) or to authenticate the client (2.2).
 */
export function ownTokenRequestFrom(
  client: OAuthClient,
  scope: string,
  habits: TokenEndpointHabits,
  signed?: { readonly assertion: Secret; readonly use: "grant" | "client_authentication" },
): TokenRequest {
  const assertion = signed?.assertion.reveal() ?? "";
  if (signed?.use === "grant")
    return tokenRequestFrom(client, habits, { grant_type: `${URN}:grant-type:jwt-bearer`, assertion, scope });
  const proof = signed && {
    client_assertion_type: `${URN}:client-assertion-type:jwt-bearer`,
    client_assertion: assertion,
  };
  return tokenRequestFrom(client, habits, { grant_type: "client_credentials", ...proof, scope });
}

/**
 * Builds a token request (RFC 6749 section 3.2). It accepts JSON, since GitHub answers with a form otherwise. The
 * client authenticates in one way only: trying a second one would use the refresh token twice (threats 3.5). Parameters
 * override earlier ones of the same name, in the order `parameters`, those of every token request, `grantParameters`; an
 * empty one is left out.
 */
function tokenRequestFrom(
  client: OAuthClient,
  habits: TokenEndpointHabits,
  parameters: OAuth2["tokenParameters"],
  grantParameters: OAuth2["tokenParameters"] = {},
): TokenRequest {
  const all = new Map<string, string>();
  for (const [name, value] of [parameters, habits.tokenParameters, grantParameters].flatMap(Object.entries<string>)) {
    if (value === "") all.delete(name);
    else all.set(name, value);
  }
  const headers = ["accept", "application/json", "user-agent", "provider-call-relay", "accept-encoding", "identity"];
  if (habits.clientAuthentication === "client_secret_basic" && client.clientSecret !== undefined) {
    headers.push("authorization", basicFrom(client.clientId, client.clientSecret, habits.rawClientSecretBasic));
  } else {
    if (client.clientId !== "") all.set(habits.clientIdParameter, client.clientId);
    const isPost = habits.clientAuthentication === "client_secret_post" && client.clientSecret !== undefined;
    if (isPost) all.set("client_secret", client.clientSecret.reveal());
  }
  return encodedFrom(all, headers, habits.tokenRequestFormat);
}

function encodedFrom(
  parameters: ReadonlyMap<string, string>,
  headers: readonly string[],
  format: TokenEndpointHabits["tokenRequestFormat"],
): TokenRequest {
  const [mediaType, text] =
    format === "json"
      ? ["application/json", JSON.stringify(Object.fromEntries(parameters))]
      : ["application/x-www-form-urlencoded", new URLSearchParams([...parameters]).toString()];
  return { headers: ["content-type", mediaType, ...headers], body: Buffer.from(text) };
}

/**
 * Basic credentials: id and secret are form-encoded first (RFC 6749 section 2.3.1), unless the provider reads them raw.
 */
function basicFrom(clientId: string, clientSecret: Secret, isRaw: boolean): string {
  const encode = (text: string) => (isRaw ? text : new URLSearchParams([["", text]]).toString().slice(1));
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret.reveal())}`).toString("base64")}`;
}
