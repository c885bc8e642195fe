import { RelayError } from "../model/errors.js";
import {
  fillCredential,
  fillTemplate,
  isBasic,
  namesIn,
  parseValues,
  type ValueTexts,
} from "../providers/connection-value.js";
import { type CredentialTexts, placesOf } from "../providers/credential.js";
import { CONNECTION_KINDS, type ConnectionKind, type OAuth1, type Provider } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import type { Connection } from "./connection.js";
import { occasionAt, type SignableRequest, signedCredentials, signingKeyOf } from "./signature.js";
import { type GivenProblem, type GivenValues, unpackKey } from "./signing-key.js";
import type { OAuthClient } from "./token-request.js";
import type { TokenResponse } from "./token-response.js";

/** What goes with a connection's calls, in the clear. Prints itself without it. */
export interface Credentials {
  /** The access token; undefined at kinds without tokens. */
  readonly token: Secret | undefined;
  /** What goes into each place of the provider's credentials. */
  readonly texts: CredentialTexts;
  /** What no answer may hold. */
  readonly secrets: readonly Secret[];
  /** Signs a request, at a time in milliseconds since the epoch: what it gives stands in the one place, instead of `texts`. */
  readonly sign?: ((request: SignableRequest, now: number) => Secret) | undefined;
}

/** What goes into each place of one request that is about to be sent. */
export function textsOf(
  { texts, sign }: Pick<Credentials, "texts" | "sign">,
  request: SignableRequest,
  now: number,
): CredentialTexts {
  return sign === undefined ? texts : [sign(request, now)];
}

/** Whether the connections of a kind hold secret values in the place of tokens. */
export function isWithoutTokens(kind: ConnectionKind): boolean {
  return kind === "api_key" || kind === "basic" || kind === "oauth1";
}

/** Whether calls of a kind are made with a client's secret, or with a token that is the client's own. */
export function isOfClient(kind: ConnectionKind): boolean {
  return isGrantKind(kind) || kind === "oauth1";
}

/** Whether the relay gets the tokens of a kind for secret values of the connection. */
export function isGrantKind(kind: ConnectionKind): boolean {
  return kind === "client_credentials" || kind === "jwt_bearer";
}

/**
 * Secret values in the form in which they are stored: sealed together where a token would be. Keys stand for the access
 * token, never expire, and nothing refreshes them; what the relay gets tokens for stands for the refresh token, beside an access
 * token that has ended long ago, so that the first call gets one.
 */
export function responseFromSecrets(kind: ConnectionKind, values: Readonly<Record<string, string>>): TokenResponse {
  const secrets = new Secret(JSON.stringify(values));
  const isGrant = isGrantKind(kind);
  return {
    accessToken: isGrant ? new Secret("") : secrets,
    // What tells the row from one with tokens of the user's.
    tokenType: kind,
    refreshToken: isGrant ? secrets : undefined,
    idToken: undefined,
    expiresInS: isGrant ? 1 : undefined,
    scope: "",
  };
}

/** When what a connection is made from was obtained, milliseconds since the epoch: see {@link responseFromSecrets}. */
export function obtainedAtOf(kind: ConnectionKind, now: number): number {
  return isGrantKind(kind) ? 0 : now;
}

/** Whether no token was got yet for what a connection holds. */
export function isUnfetched({ obtainedAt, refreshToken }: Pick<Connection, "obtainedAt" | "refreshToken">): boolean {
  return obtainedAt === 0 && refreshToken !== undefined;
}

/**
 * Judges everything that somebody gave for a connection that has no tokens of an authorization code: all values that are
 * shown, and all that are not. Pure.
 *
 * @param parse reads the values of one class.
 */
export function parseGiven(
  given: GivenValues,
  provider: Provider,
  parse: typeof parseValues = parseValues,
): { readonly open: ValueTexts; readonly secrets: ValueTexts } | GivenProblem {
  const unpacked = unpackKey(given, provider);
  if ("problem" in unpacked) return unpacked;
  const open = parse(unpacked.open, provider, "open");
  if ("problem" in open) return { ...open, isSecret: false };
  const secrets = parse(unpacked.secrets, provider, "secret");
  return "problem" in secrets ? { ...secrets, isSecret: true } : { open: open.values, secrets: secrets.values };
}

/**
 * What is wrong with the client that a connection's calls are made with; undefined when nothing is. It has one of its own,
 * id and secret, or the application has.
 */
export function problemOfClient(
  provider: Pick<Provider, "kind" | "name">,
  open: Readonly<Record<string, string>>,
  secrets: Readonly<Record<string, unknown>>,
  hasClient: boolean,
): { readonly parameter: "client_id" | "client_secret"; readonly problem: string } | undefined {
  if (!isOfClient(provider.kind) || provider.kind === "jwt_bearer") return undefined;
  const [id, secret] = [Object.hasOwn(open, "client_id"), Object.hasOwn(secrets, "client_secret")];
  if (id === secret && (id || hasClient)) return undefined;
  const parameter = id ? "client_secret" : "client_id";
  return {
    parameter,
    problem: `is missing: the application has no OAuth client for ${provider.name} to be used instead`,
  };
}

/**
 * What goes with the calls of a connection.
 *
 * Throws RelayError REAUTHORIZATION_REQUIRED when the row is of another kind than the provider's definition has now, before
 * the secret is opened, and when it lacks what that puts into calls: none goes out without its credentials.
 *
 * @param open opens what is sealed as the row's access token.
 * @param openSecrets opens the secret values of a row with tokens.
 * @param client the application's, with which requests are signed; undefined where the connection has one of its own.
 */
export function credentialsOf(
  provider: Provider,
  connection: Pick<Connection, "tokenType" | "originParameters">,
  open: () => Secret,
  openSecrets?: () => Secret,
  client?: OAuthClient,
): Credentials {
  const { kind } = provider;
  requireKind(provider, connection);
  const opened = open();
  if (provider.oauth1 !== undefined) return signingWith(provider.oauth1, connection, secretsIn(opened), client);
  if (isWithoutTokens(kind)) return { token: undefined, ...placedTexts(provider, connection, secretsIn(opened)) };
  const places = placesOf(provider);
  const isToken = places.every(({ value }) => namesIn(value).every((name) => !isSecretOf(provider, name)));
  const secrets = isToken || openSecrets === undefined ? {} : secretsIn(openSecrets());
  return { token: opened, ...placedTexts(provider, connection, { access_token: opened, ...secrets }) };
}

/** RFC 5849 section 3. */
function signingWith(
  { signatureMethod, realm: template }: OAuth1,
  { originParameters }: Pick<Connection, "originParameters">,
  { oauth_token: token, oauth_token_secret: secret, client_secret: ownSecret }: Readonly<Record<string, Secret>>,
  client: OAuthClient = { clientId: originParameters["client_id"] ?? "", clientSecret: ownSecret },
): Credentials {
  if (token === undefined || secret === undefined) throw unreadable();
  const { clientId, clientSecret } = client;
  const textOf = (name: string) => (Object.hasOwn(originParameters, name) ? originParameters[name] : undefined);
  const realm = fillTemplate(template, textOf) ?? "";
  const isShown = signatureMethod === "PLAINTEXT";
  const secrets = [token, secret, clientSecret, isShown ? new Secret(signingKeyOf(clientSecret, secret)) : undefined];
  const signing = { clientId, clientSecret, token: { token, secret } };
  return {
    token: undefined,
    texts: [],
    secrets: secrets.flatMap((each) => each ?? []),
    sign: (request, now) => signedCredentials(request, signing, { signatureMethod, realm }, occasionAt(now)),
  };
}

function isSecretOf({ connectionValues }: Provider, name: string): boolean {
  return connectionValues.some((value) => value.name === name && value.isSecret);
}

/** Secret values by their names, as they were sealed together. Throws RelayError STORE_UNAVAILABLE. */
export function secretsIn(opened: Secret): Readonly<Record<string, Secret>> {
  const values = Object.entries(valuesIn(opened));
  return Object.fromEntries(values.map(([name, value]) => [name, new Secret(value)]));
}

function valuesIn(opened: Secret): Readonly<Record<string, string>> {
  try {
    return JSON.parse(opened.reveal()) as Record<string, string>;
  } catch {
    // The parser's own words quote the text.
    throw unreadable();
  }
}

function unreadable(): RelayError {
  return new RelayError(
    "STORE_UNAVAILABLE",
    "This connection's secret values cannot be read. The user must connect again.",
  );
}

/** Whether a connection's row is one of the kind. */
export function isOfKind({ tokenType }: Pick<Connection, "tokenType">, kind: ConnectionKind): boolean {
  const others: readonly string[] = CONNECTION_KINDS.slice(1);
  return kind === "oauth2" ? !others.includes(tokenType) : tokenType === kind;
}

function requireKind({ kind, name }: Provider, connection: Pick<Connection, "tokenType">): void {
  if (!isOfKind(connection, kind)) throw connectAgain(name);
}

/** A connection is older than what its provider's definition asks for by now. */
export function connectAgain(providerName: string): RelayError {
  return new RelayError(
    "REAUTHORIZATION_REQUIRED",
    `This connection is not what the definition of ${providerName} asks for by now. The user must connect again.`,
  );
}

/** Whether a secret value that the definition asks for is not among those of a connection. */
export function lacksSecret({ connectionValues }: Provider, secrets: Readonly<Record<string, Secret>>): boolean {
  return connectionValues.some(
    ({ name, isSecret, isOptional }) => isSecret && !isOptional && !Object.hasOwn(secrets, name),
  );
}

function placedTexts(
  provider: Provider,
  { originParameters }: Pick<Connection, "originParameters">,
  secrets: Readonly<Record<string, Secret>>,
): Pick<Credentials, "texts" | "secrets"> {
  const isNeeded = (name: string) =>
    provider.connectionValues.some((value) => value.name === name && !value.isOptional);
  const textOf = (name: string) =>
    Object.hasOwn(secrets, name)
      ? secrets[name]?.reveal()
      : Object.hasOwn(originParameters, name)
        ? originParameters[name]
        : undefined;
  const all = Object.values(secrets);
  const texts = placesOf(provider).map((place) => {
    if (place.value === "{access_token}") return secrets["access_token"];
    const filled = fillCredential(place, textOf);
    if (filled === undefined && namesIn(place.value).some((name) => textOf(name) === undefined && isNeeded(name)))
      throw connectAgain(provider.name);
    // The base64 of a whole is not that of its parts.
    if (filled !== undefined && isBasic(place)) all.push(new Secret(filled.plain));
    return filled && new Secret(filled.text);
  });
  return { texts, secrets: all };
}
