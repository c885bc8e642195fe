import { originTextsOf } from "../providers/definition-from-provider.js";
import type { Credential, ExpirySignal, OAuth2, Provider } from "../providers/provider.js";
import { textFields } from "./text-table.js";

type Fields = ReadonlyArray<readonly [name: string, value: string | undefined]>;

/** A provider for a person; what is empty, and what is as the RFCs have it, is left out. */
export function textFromProvider(provider: Provider): string {
  const fields: Fields = [
    ["name", provider.name],
    ["aliases", provider.aliases.join(", ")],
    ["display name", provider.displayName],
    ["documentation", provider.documentationUri],
    ["api origins", originTextsOf(provider).join(", ")],
    ["token placed in", textFromCredential(provider.credential)],
    ["default headers", provider.defaultHeaders.map(([field, value]) => `${field}: ${value}`).join(", ")],
    ["url placeholders", [...provider.urlPlaceholders].join(", ")],
    ["ended token", provider.expirySignals.map(textFromSignal).join("; ")],
    ...(provider.oauth2 === undefined ? [] : fieldsFromOAuth2(provider.oauth2)),
    ["private network", provider.allowPrivateNetwork ? "allowed" : ""],
    ["trace context", provider.passTraceContext ? "passed on" : ""],
    ["notes", provider.notes],
  ];
  return textFields(fields.flatMap(([name, value]) => (value ? [[name, value] as const] : [])));
}

function fieldsFromOAuth2(oauth2: OAuth2): Fields {
  return [
    ["authorization", oauth2.authorizationEndpoint],
    [
      "issuer",
      oauth2.issuer && oauth2.issuer + (oauth2.authorizationResponseIssParameterSupported ? " (always named)" : ""),
    ],
    ["PKCE", oauth2.pkce ? "yes" : ""],
    ["default scopes", oauth2.defaultScopes.join(", ")],
    ["scope separator", oauth2.scopeSeparator === " " ? "" : oauth2.scopeSeparator],
    ["authorization parameters", textFromParameters(oauth2.authorizationParameters)],
    ["token endpoint", oauth2.tokenEndpoint],
    ["refresh endpoint", oauth2.refreshEndpoint],
    ["revocation", oauth2.revocationEndpoint],
    ["client authentication", oauth2.clientAuthentication],
    ["client id parameter", oauth2.clientIdParameter === "client_id" ? "" : oauth2.clientIdParameter],
    ["token request format", oauth2.tokenRequestFormat === "form" ? "" : oauth2.tokenRequestFormat],
    ["token parameters", textFromParameters(oauth2.tokenParameters)],
    ["code parameters", textFromParameters(oauth2.codeParameters)],
    ["refresh parameters", textFromParameters(oauth2.refreshParameters)],
    ["token response in", oauth2.tokenResponseMember],
    ["token error in", oauth2.tokenErrorMember],
    ["refresh tokens end with", [...oauth2.refreshEndedErrors].join(", ")],
    ["access tokens last", lifetimeFrom(oauth2)],
    ["refresh tokens", oauth2.refreshTokenRotation ? "rotate" : ""],
  ];
}

function textFromCredential(credential: Credential): string {
  if (credential.kind === "query") return `?${credential.parameter}=`;
  return `${credential.name}: ${credential.scheme}`.trimEnd();
}

function textFromSignal({ statusCode, ...body }: ExpirySignal): string {
  return body.member === undefined
    ? `${statusCode}`
    : `${statusCode} with ${body.member}=${[...body.values].join("|")}`;
}

function textFromParameters(parameters: Readonly<Record<string, string>>): string {
  return Object.entries(parameters)
    .map(([name, value]) => (value === "" ? `no ${name}` : `${name}=${value}`))
    .join(", ");
}

function lifetimeFrom({ nonExpiringAccessTokens, defaultExpiresIn }: OAuth2): string {
  if (nonExpiringAccessTokens) return "until they are revoked";
  return defaultExpiresIn === undefined ? "" : `${defaultExpiresIn} seconds unless the token response says otherwise`;
}
