import type {
  CredentialPlacement,
  ConnectionValue as Definition,
  OAuth1 as OAuth1Definition,
  Provider as ProviderDefinition,
} from "../../gen/relay/admin/v1/provider_pb.js";
import { isTemplate, namesIn } from "./connection-value.js";
import { isDroppedHeader } from "./credential.js";
import { parseChoice } from "./definition-json.js";
import { parseValues } from "./definition-values.js";
import { type EndpointPolicy, endpointProblem } from "./endpoint.js";
import {
  CONNECTION_KINDS,
  type ConnectionKind,
  type ConnectionValue,
  type Credential,
  hasTokens,
  KEY_VALUES,
  OAUTH1_ENDPOINTS,
  type OAuth1,
  type Provider,
  type Report,
  SIGNATURE_METHODS,
} from "./provider.js";

/** The default credential value of each kind. */
const DEFAULT_VALUE: Readonly<Record<ConnectionKind, string>> = {
  oauth2: "{access_token}",
  client_credentials: "{access_token}",
  jwt_bearer: "{access_token}",
  api_key: "{api_key}",
  basic: "{username}:{password}",
  // Not sent as such: the signature is made with it.
  oauth1: "{oauth_token}",
};
/** A client stored with the connection; without one, the application's client is used. */
const OWN_CLIENT: readonly Partial<Definition>[] = [
  { name: "client_id", label: "Client ID", optional: true },
  { name: "client_secret", label: "Client secret", secret: true, optional: true },
];
/** Values that each kind has implicitly. */
const OWN_VALUES: Readonly<Record<ConnectionKind, readonly Partial<Definition>[]>> = {
  oauth2: [],
  client_credentials: OWN_CLIENT,
  jwt_bearer: [{ name: KEY_VALUES.key, label: "Private key", secret: true }],
  api_key: [{ name: "api_key", label: "API key", secret: true }],
  basic: [
    // RFC 7617 section 2: text after a colon would be taken for the password.
    { name: "username", label: "User name", pattern: "[^:]*" },
    { name: "password", label: "Password", secret: true },
  ],
  oauth1: [
    ...OWN_CLIENT.map((value) => ({ ...value, label: value.secret ? "Consumer secret" : "Consumer key" })),
    { name: "oauth_token", label: "Token", secret: true },
    { name: "oauth_token_secret", label: "Token secret", secret: true },
  ],
};

/** The part of a provider that says what users connect with and where it is sent. */
export interface ConnectionParts {
  readonly kind: ConnectionKind;
  readonly connectionValues: readonly ConnectionValue[];
  readonly credential: Credential;
  readonly furtherCredentials: readonly Credential[];
}

/** Parses `kind`, `connectionValues`, `credential` and `furtherCredentials` of a definition. */
export function parseConnectionParts(
  definition: ProviderDefinition,
  hosts: Pick<Provider, "origins" | "hostTemplates">,
  report: Report,
): ConnectionParts {
  const kind = parseKind(definition, report);
  const values = valueDefinitions(kind, definition);
  const first = values.find(({ secret }) => secret === true)?.name;
  const defaultValue = kind === "api_key" && first !== undefined ? `{${first}}` : DEFAULT_VALUE[kind];
  const credential = parseCredential(kind, definition.credential, defaultValue, "credential", report);
  const furtherCredentials = definition.furtherCredentials.map((placement, at) =>
    parseCredential(kind, placement, "", `furtherCredentials[${at}]`, report),
  );
  const places = [credential, ...furtherCredentials];
  const headers = Object.values(definition.defaultHeaders);
  const connectionValues = parseValues(kind, values, { ...hosts, places, headers }, report);
  checkPlaces(kind, places, connectionValues, report);
  return { kind, connectionValues, credential, furtherCredentials };
}

function parseKind({ kind: text, oauth2, oauth1 }: ProviderDefinition, report: Report): ConnectionKind {
  const known = CONNECTION_KINDS.find((kind) => kind === (text || "oauth2"));
  if ((oauth1 !== undefined) !== (known === "oauth1"))
    report("oauth1", oauth1 === undefined ? "is missing for the kind oauth1" : "is allowed only for the kind oauth1");
  if (known === undefined) report("kind", `must be one of ${CONNECTION_KINDS.join(", ")}`);
  else if (hasTokens(known)) {
    const { assertion, tokenEndpoint } = oauth2 ?? {};
    if (known !== "oauth2" && !tokenEndpoint && assertion?.use !== "access_token")
      report("oauth2.tokenEndpoint", `is missing for the kind ${known}`);
    if (known === "jwt_bearer" && assertion === undefined)
      report("oauth2.assertion", `is missing for the kind ${known}`);
    if (known !== "jwt_bearer" && assertion !== undefined)
      report("oauth2.assertion", `is not allowed for the kind ${known}`);
  } else if (oauth2 !== undefined) report("oauth2", `is not allowed for the kind ${known}`);
  return known ?? "oauth2";
}

/** The definition's values, then the kind's implicit ones, unless the definition names other keys instead. */
function valueDefinitions(
  kind: ConnectionKind,
  { connectionValues, oauth1 }: ProviderDefinition,
): readonly Partial<Definition>[] {
  const isOnlyKeys = !hasTokens(kind) && oauth1 === undefined;
  if (isOnlyKeys && connectionValues.some(({ secret }) => secret)) return connectionValues;
  const named = new Set(connectionValues.map(({ name }) => name));
  // Tokens from the user's consent belong to the application's client.
  const own = OWN_VALUES[kind].filter(
    (value) => !(oauth1?.authorizationEndpoint && OWN_CLIENT.some(({ name }) => name === value.name)),
  );
  // Optional, since the application's OAuth client is used when the connection has none.
  const given = connectionValues.map((value) => {
    const known = own.find(({ name }) => name === value.name);
    if (known?.name === KEY_VALUES.key) return { ...value, secret: true, optional: false, pattern: "" };
    const { secret = false, optional = false } = known ?? {};
    return { ...value, secret: value.secret || (secret && !isOnlyKeys), optional: value.optional || optional };
  });
  return [...given, ...own.filter(({ name = "" }) => !named.has(name))];
}

/** Names of headers that a definition may set: a token of RFC 9110 section 5.6.2. */
export const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}$/;
const QUERY_PARAMETER = /^[A-Za-z0-9._~-]{1,64}$/;
const CREDENTIAL_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/;

/** Schemes of the kinds that do not use Bearer. */
const SCHEMES: Partial<Readonly<Record<ConnectionKind, string>>> = { basic: "Basic", oauth1: "OAuth" };

/**
 * Parses where a credential goes. Default: `Authorization: Bearer` (RFC 6750 section 2.1), `Authorization: Basic` for
 * the kind `basic` (RFC 7617), `Authorization: OAuth` for the kind `oauth1` (RFC 5849 section 3.5.1).
 */
function parseCredential(
  kind: ConnectionKind,
  placement: CredentialPlacement | undefined,
  defaultValue: string,
  field: string,
  report: Report,
): Credential {
  const value = placement?.value || defaultValue;
  if (!CREDENTIAL_VALUE.test(value))
    report(
      `${field}.value`,
      "must be 1 to 256 characters of printable ASCII, without spaces around it, such as {api_key}",
    );
  if (placement === undefined || kind === "oauth1") {
    if (placement !== undefined)
      report(field, "is not allowed for the kind oauth1, whose signature goes into Authorization");
    return { kind: "header", name: "authorization", scheme: SCHEMES[kind] ?? "Bearer", value };
  }
  const { scheme, queryParameter } = placement;
  if (queryParameter !== "") {
    if (placement.header !== "") report(`${field}.queryParameter`, "is not allowed together with header");
    if (scheme !== "") report(`${field}.scheme`, "is not allowed together with queryParameter");
    if (!QUERY_PARAMETER.test(queryParameter)) report(`${field}.queryParameter`, "must be letters, digits and -._~");
    return { kind: "query", parameter: queryParameter, value };
  }
  const name = (placement.header || "authorization").toLowerCase();
  if (!FIELD_NAME.test(name)) report(`${field}.header`, "must be a header name");
  else if (name !== "authorization" && !isCredentialHeader(name)) {
    report(`${field}.header`, "must not be a header that the relay or the connection sets itself");
  }
  if (!SCHEME.test(scheme)) report(`${field}.scheme`, "must be one word, such as Bearer");
  return { kind: "header", name, scheme, value };
}

function isCredentialHeader(name: string): boolean {
  return !isDroppedHeader(name) && name !== "content-type" && name !== "accept";
}

/** Secret values used to make signatures. */
const SIGNING = ["oauth_token", "oauth_token_secret", "client_secret"];

/** Checks that each place has one credential, and that it uses only known values. */
function checkPlaces(
  kind: ConnectionKind,
  places: readonly Credential[],
  values: readonly ConnectionValue[],
  report: Report,
): void {
  const known = new Set([...values.map(({ name }) => name), ...(hasTokens(kind) ? ["access_token"] : [])]);
  if (kind === "jwt_bearer") for (const name of Object.values(KEY_VALUES)) known.delete(name);
  const secret = new Set(["access_token", ...values.flatMap(({ name, isSecret }) => (isSecret ? [name] : []))]);
  places.forEach((place, at) => {
    const field = at === 0 ? "credential" : `furtherCredentials[${at - 1}]`;
    const names = namesIn(place.value);
    const unknown = names.find((name) => !known.has(name));
    if (unknown !== undefined) report(`${field}.value`, `{${unknown}} is not a connection value that may be sent`);
    else if (!isTemplate(place.value) || !names.some((name) => secret.has(name))) {
      report(`${field}.value`, "must name a secret value, such as {api_key}");
    }
    if (places.findIndex((other) => placeName(other) === placeName(place)) !== at) report(field, "appears twice");
  });
  const placed = new Set([...places.flatMap((place) => namesIn(place.value)), ...(kind === "oauth1" ? SIGNING : [])]);
  // The other kinds use their secrets in token requests.
  const left = hasTokens(kind) ? undefined : values.find(({ name, isSecret }) => isSecret && !placed.has(name));
  if (left !== undefined) report("furtherCredentials", `must place the secret value ${left.name}`);
}

function placeName(place: Credential): string {
  return place.kind === "header" ? `${place.name}:` : `?${place.parameter.toLowerCase()}`;
}

/** A quoted-string (RFC 9110 section 5.6.4) without the quotes and backslashes that would need escaping. */
const REALM = /^[\x20\x21\x23-\x5b\x5d-\x7e]{0,256}$/;
/** The relay sets the parameters of RFC 5849 itself. */
const PARAMETER = /^(?!oauth_)[A-Za-z][A-Za-z0-9._-]{0,63}$/;

/** Parses the `oauth1` member of a definition. */
export function parseOAuth1(definition: OAuth1Definition, policy: EndpointPolicy, report: Report): OAuth1 {
  const { realm, scopeParameter } = definition;
  const [temporaryCredentialEndpoint, authorizationEndpoint, tokenEndpoint] = OAUTH1_ENDPOINTS.map((field) =>
    parseEndpoint(definition, field, policy, report),
  );
  const unknown = namesIn(realm).find((name) => !policy.names.has(name));
  if (!REALM.test(realm)) report("oauth1.realm", "must be printable ASCII without double quotes and backslashes");
  else if (unknown !== undefined) report("oauth1.realm", `{${unknown}} is not a connection value`);
  if (scopeParameter !== "" && !PARAMETER.test(scopeParameter))
    report("oauth1.scopeParameter", "must be letters, digits and ._-, and must not begin with oauth_");
  return {
    temporaryCredentialEndpoint,
    authorizationEndpoint,
    tokenEndpoint,
    signatureMethod: parseChoice(SIGNATURE_METHODS, definition.signatureMethod, "oauth1.signatureMethod", report),
    realm,
    scopeParameter: scopeParameter || undefined,
  };
}

/** Either all three endpoints are present, or none. */
function parseEndpoint(
  definition: OAuth1Definition,
  field: (typeof OAUTH1_ENDPOINTS)[number],
  policy: EndpointPolicy,
  report: Report,
): string | undefined {
  const text = definition[field];
  const problem = text === "" ? undefined : endpointProblem(text, policy);
  if (problem !== undefined) report(`oauth1.${field}`, problem);
  else if (text === "" && OAUTH1_ENDPOINTS.some((other) => definition[other] !== ""))
    report(`oauth1.${field}`, "is missing: name all three endpoints, or none");
  else if (/[?&]oauth_/i.test(text))
    report(`oauth1.${field}`, "must not contain parameters of RFC 5849, which the relay sets");
  return text || undefined;
}
