import { parseJson } from "../lib/parse-json.js";
import { RelayError } from "../model/errors.js";
import {
  fillCredential,
  fillTemplate,
  isBasic,
  namesIn,
  parseValues,
  textIn,
  type ValueTexts,
} from "../providers/connection-value.js";
import { type CredentialTexts, placesOf } from "../providers/credential.js";
import { CONNECTION_KINDS, type ConnectionKind, hasTokens, type OAuth1, type Provider } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import type { Connection } from "./connection.js";
import { occasionAt, type SignableRequest, signedCredentials, signingKeyOf } from "./signature.js";
import { type GivenProblem, type GivenValues, unpackKey } from "./signing-key.js";
import type { OAuthClient } from "./token-request.js";
import type { TokenResponse } from "./token-response.js";

/** The credentials of a connection's calls, in the clear. Printed redacted. */
export interface Credentials {
  /** The access token; undefined for kinds without tokens. */
  readonly token: Secret | undefined;
  /** The text for each place of the provider's credentials. */
  readonly texts: CredentialTexts;
  /** Texts that must not appear in an answer. */
  readonly secrets: readonly Secret[];
  /** Signs a request; the result fills the only place, instead of `texts`. `now` is milliseconds since the epoch. */
  readonly sign?: ((request: SignableRequest, now: number) => Secret) | undefined;
}

/** The text for each place of a request that is about to be sent. */
export function textsOf(
  { texts, sign }: Pick<Credentials, "texts" | "sign">,
  request: SignableRequest,
  now: number,
): CredentialTexts {
  return sign === undefined ? texts : [sign(request, now)];
}

/** Whether calls of a kind are made with a client's secret, or with the client's own token. */
export function isOfClient(kind: ConnectionKind): boolean {
  return isGrantKind(kind) || kind === "oauth1";
}

/** Whether the relay exchanges secret values of the connection for the tokens of a kind. */
export function isGrantKind(kind: ConnectionKind): boolean {
  return kind === "client_credentials" || kind === "jwt_bearer";
}

/**
 * Puts secret values into the form in which they are stored: together, in the place of a token. Keys take the place of
 * the access token; they never expire and are never refreshed. Values that the relay exchanges for tokens take the
 * place of the refresh token, beside an empty access token that has expired, so that the first call gets one.
 */
export function responseFromSecrets(kind: ConnectionKind, values: Readonly<Record<string, string>>): TokenResponse {
  const secrets = new Secret(JSON.stringify(values));
  const isGrant = isGrantKind(kind);
  return {
    accessToken: isGrant ? new Secret("") : secrets,
    // Tells the row apart from one with tokens of the user's.
    tokenType: kind,
    refreshToken: isGrant ? secrets : undefined,
    idToken: undefined,
    expiresInS: isGrant ? 1 : undefined,
    scope: "",
  };
}

/** The time to store as that of obtaining the token, milliseconds since the epoch: see {@link responseFromSecrets}. */
export function obtainedAtOf(kind: ConnectionKind, now: number): number {
  return isGrantKind(kind) ? 0 : now;
}

/** Whether a connection's secret values have not been exchanged for a token yet. */
export function isUnfetched({
  obtainedAt,
  refreshToken,
}: {
  readonly obtainedAt: number;
  readonly refreshToken: unknown;
}): boolean {
  return obtainedAt === 0 && refreshToken !== undefined;
}

/**
 * Judges everything that was entered for a connection that does not come from an authorization code: all open values
 * and all secret ones. Pure.
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
 * What is wrong with the client that a connection's calls are made with; undefined when nothing is. Either the
 * connection has its own, both id and secret, or the application has one.
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
    problem: `is missing: give both client_id and client_secret, or neither if the application has an OAuth client for ${provider.name}`,
  };
}

/**
 * Opens the credentials for the calls of a connection.
 *
 * Throws RelayError REAUTHORIZATION_REQUIRED when the row's kind differs from that of the provider's definition, before
 * any secret is opened, and when the row lacks a value that the definition puts into calls: no call goes out without
 * its credentials.
 *
 * @param open opens what is sealed as the row's access token.
 * @param openSecrets opens the secret values of a row with tokens.
 * @param client the application's, to sign requests with; undefined when the connection has its own.
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
  if (!hasTokens(kind)) return { token: undefined, ...placedTexts(provider, connection, secretsIn(opened)) };
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
  const realm = fillTemplate(template, textIn(originParameters)) ?? "";
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

/** Secret values that were sealed together, by name. Throws RelayError STORE_UNAVAILABLE when they cannot be read. */
export function secretsIn(opened: Secret): Readonly<Record<string, Secret>> {
  const values = parseJson(opened.reveal());
  if (values === undefined) throw unreadable();
  const texts = Object.entries(values as Readonly<Record<string, string>>);
  return Object.fromEntries(texts.map(([name, text]) => [name, new Secret(text)]));
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

/** Throws RelayError REAUTHORIZATION_REQUIRED when the row's kind differs from that of the provider's definition. */
export function requireKind({ kind, name }: Provider, connection: Pick<Connection, "tokenType">): void {
  if (!isOfKind(connection, kind)) throw connectAgain(name);
}

/** The connection does not have what its provider's definition now requires. */
export function connectAgain(providerName: string): RelayError {
  return new RelayError(
    "REAUTHORIZATION_REQUIRED",
    `This connection no longer matches the definition of ${providerName}. The user must connect again.`,
  );
}

/** Whether a connection lacks a secret value that the definition requires. */
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
  const openTextOf = textIn(originParameters);
  const textOf = (name: string) => (Object.hasOwn(secrets, name) ? secrets[name]?.reveal() : openTextOf(name));
  const all = Object.values(secrets);
  const texts = placesOf(provider).map((place) => {
    if (place.value === "{access_token}") return secrets["access_token"];
    const filled = fillCredential(place, textOf);
    if (filled === undefined && namesIn(place.value).some((name) => textOf(name) === undefined && isNeeded(name)))
      throw connectAgain(provider.name);
    // The base64 form does not contain the parts, so the whole is a secret of its own.
    if (filled !== undefined && isBasic(place)) all.push(new Secret(filled.plain));
    return filled && new Secret(filled.text);
  });
  return { texts, secrets: all };
}
