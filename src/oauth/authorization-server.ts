import { createPrivateKey, randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import type { ApplicationStore } from "../applications/application.js";
import type { CallerOptions } from "../applications/caller.js";
import type { Pending } from "../lib/process.js";
import { RelayError } from "../model/errors.js";
import type { ValueTexts } from "../providers/connection-value.js";
import { fillEndpoint } from "../providers/endpoint.js";
import {
  type Assertion,
  hasOwnPage,
  isSelfSigned,
  KEY_VALUES,
  type OAuth2,
  type Provider,
  type ProviderCatalog,
} from "../providers/provider.js";
import { type Sealer, Secret } from "../sealing/seal.js";
import type { Connection, ConnectionStore, ServedConnection } from "./connection.js";
import { boundValuesOf, filledParameters, withAnswer } from "./connection-values.js";
import { connectAgain, isGrantKind, isOfClient, isOfKind, lacksSecret, secretsIn } from "./credentials.js";
import {
  type OAuthClientStore,
  openOAuthClient,
  type RefreshPlace,
  type RegisteredClient,
  type StoredOAuthClient,
} from "./oauth-client.js";
import { unpackKey } from "./signing-key.js";
import { openToken } from "./store-answer.js";
import type { Tickets } from "./tickets.js";
import type { TokenEndpointAnswer } from "./token-answer.js";
import { freeHostParameter, type RefreshTarget, type TokenEndpoint } from "./token-endpoint.js";
import { type CodeHabits, ownTokenRequestFrom, type TokenRequest } from "./token-request.js";
import type { ToldMembers } from "./token-response.js";

/** What finding a connection's authorization server needs. */
interface AuthorizationServerOptions {
  readonly catalog: ProviderCatalog;
  readonly oauthClients: Pick<OAuthClientStore, "find">;
  readonly sealer: Sealer;
}

/** A connection's authorization server, and the client to use there. */
export interface AuthorizationServer extends RefreshTarget, CodeHabits {
  /** Where codes are redeemed (RFC 6749 section 3.2). */
  readonly tokenEndpoint: string;
  /** Where refresh requests go; usually the token endpoint. */
  readonly refreshEndpoint: string;
}

/**
 * Creates the function that finds where a connection is refreshed and with which client, from the provider's definition
 * and the application's OAuth client. It rejects with REFRESH_UNAVAILABLE when the operator has stored no client or the
 * definition names no token endpoint, and with REAUTHORIZATION_REQUIRED when the connection lacks a secret that the
 * definition now requires.
 */
export function createTargetFor(options: AuthorizationServerOptions) {
  return async (connection: ServedConnection): Promise<RefreshTarget> => {
    const server = await findAuthorizationServer(options, connection);
    if (server instanceof RelayError) throw server;
    if (server.grant?.isWhole === false) throw connectAgain(connection.providerName);
    return { ...server, tokenEndpoint: server.refreshEndpoint };
  };
}

/**
 * Creates the function that finds only the refresh endpoint and the client's registration of a connection. It opens no
 * secret, and rejects with REFRESH_UNAVAILABLE as that of {@link createTargetFor} does.
 */
export function createPlaceFor(options: Omit<AuthorizationServerOptions, "sealer">) {
  return async (connection: Connection): Promise<RefreshPlace> => {
    const known = await findKnownServer(options, connection);
    if (known instanceof RelayError) throw known;
    return { endpoint: known.refreshEndpoint, client: known.stored ?? ownRegistration(connection) };
  };
}

/**
 * Finds the authorization server of a connection; a RelayError when there is none: REFRESH_UNAVAILABLE without a client
 * or endpoint, REAUTHORIZATION_REQUIRED when the connection no longer matches the definition. A client that is bound to
 * parameters of the origin is never sent to another origin; an unbound client is never sent to a host that a parameter
 * chooses freely.
 *
 * @param state that of the authorization response, when a code is to be redeemed.
 */
export async function findAuthorizationServer(
  options: AuthorizationServerOptions,
  connection: ServedConnection,
  state?: string,
): Promise<AuthorizationServer | RelayError> {
  const known = await findKnownServer(options, connection, state);
  if (known instanceof RelayError) return known;
  const { stored, provider, secrets, ...server } = known;
  const { oauth2 } = provider;
  if (oauth2 === undefined || !isGrantKind(provider.kind)) {
    if (stored === undefined) return nowhereToRefresh(NO_CLIENT);
    const client = openOAuthClient(options.sealer, stored);
    return { ...server, connectionId: connection.id, client, registration: stored };
  }
  const client = stored === undefined ? ownClient(connection, secrets) : openOAuthClient(options.sealer, stored);
  const texts = withoutKey({ ...server.texts, ...revealed(secrets) });
  const habits = { ...server, tokenParameters: filledParameters(oauth2.tokenParameters, texts) };
  const scope = stored?.scope || oauth2.defaultScopes.join(oauth2.scopeSeparator);
  const { assertion } = oauth2;
  const ask: Ask =
    assertion === undefined
      ? (send) => send(ownTokenRequestFrom(client, scope, habits))
      : async (send, now) => {
          const signed = await signAssertion(assertion, secrets[KEY_VALUES.key], texts, now);
          const { use } = assertion;
          if (use === "access_token") return answerFrom(signed, now);
          return send(ownTokenRequestFrom(client, scope, habits, { assertion: signed.assertion, use }));
        };
  return {
    ...server,
    connectionId: connection.id,
    client,
    registration: stored ?? ownRegistration(connection),
    grant: {
      ask,
      isOwnClient: stored === undefined,
      isWhole: !lacksSecret(provider, secrets) && hasFitKey(provider, secrets),
    },
    isTimed: assertion !== undefined,
  };
}

type Ask = NonNullable<RefreshTarget["grant"]>["ask"];

/** A signed assertion and its expiry, in seconds since the epoch. */
interface SignedAssertion {
  readonly assertion: Secret;
  readonly expiresAtS: number;
}

/** How far the provider's clock may lag behind ours, in seconds: `iat` is set back by this much. */
const CLOCK_LEEWAY_S = 30;

/**
 * Signs a JWT assertion (RFC 7523 section 3). Rejects when the key is missing or does not fit the algorithm.
 *
 * @param texts values for the templates; a member whose value is missing is left out.
 * @param now milliseconds since the epoch.
 */
async function signAssertion(
  { algorithm, header, claims, lifetimeSeconds, jti }: Assertion,
  key: Secret | undefined,
  texts: ValueTexts,
  now: number,
): Promise<SignedAssertion> {
  if (key === undefined) throw new TypeError("There is no key to sign with.");
  const iat = Math.floor(now / 1000) - CLOCK_LEEWAY_S;
  const exp = iat + lifetimeSeconds;
  const payload = { ...known(claims, texts), iat, exp, ...(jti && { jti: randomUUID() }) };
  const signer = new SignJWT(payload).setProtectedHeader({ ...known(header, texts), typ: "JWT", alg: algorithm });
  const assertion = new Secret(await signer.sign(keyFrom(key, algorithm)));
  return { assertion, expiresAtS: exp };
}

function known(members: Assertion["claims"], texts: ValueTexts): Record<string, string> {
  return Object.fromEntries(Object.entries(filledParameters(members, texts)).filter(([, text]) => text !== ""));
}

function keyFrom(key: Secret, algorithm: Assertion["algorithm"]) {
  if (algorithm === "HS256") return Buffer.from(key.reveal(), "hex");
  return createPrivateKey({ key: Buffer.from(key.reveal(), "base64"), format: "der", type: "pkcs8" });
}

/** Values that may go into requests: all except the key, which is only used to sign. */
function withoutKey({ [KEY_VALUES.key]: _key, ...texts }: ValueTexts): ValueTexts {
  return texts;
}

/** Wraps an access token that the relay has signed itself in the answer that a token endpoint would give. */
function answerFrom({ assertion, expiresAtS }: SignedAssertion, now: number): TokenEndpointAnswer {
  const members = { access_token: assertion.reveal(), expires_in: expiresAtS - Math.ceil(now / 1000) };
  return { statusCode: 200, body: Buffer.from(JSON.stringify(members)), retryAfter: "" };
}

/** The connection's own client: its id and secret are stored with the connection. */
function ownClient(
  { originParameters }: ServedConnection,
  { client_secret: clientSecret }: ReturnType<typeof secretsIn>,
) {
  return { clientId: originParameters["client_id"] ?? "", clientSecret };
}

/** Whether a key, if there is one, fits the definition's algorithm; the connection may be older than the definition. */
function hasFitKey(provider: Provider, secrets: ReturnType<typeof secretsIn>): boolean {
  const given = { open: new Map(), secrets: new Map(Object.entries(revealed(secrets))) };
  return !("problem" in unpackKey(given, provider));
}

/** A registration unique to this connection, so that a refusal of its client is not counted against any other. */
function ownRegistration({ id, applicationId, providerName }: ServedConnection): RegisteredClient {
  return { id, applicationId, providerName, updatedAt: 0 };
}

function openSecrets(sealer: Sealer, { userId, refreshToken, ...connection }: ServedConnection) {
  if (userId === undefined || refreshToken === undefined) return {};
  return secretsIn(openToken(sealer, { ...connection, userId }, "refresh_token", refreshToken));
}

/** Secret values in the clear, by name. */
export function revealed(secrets: ReturnType<typeof secretsIn>): ValueTexts {
  return Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]));
}

/**
 * Whether the connection has a client of its own: then the client secret is among its secrets. When no secret may be
 * opened, any client id other than the application's counts as the connection's own, unless its last failure was with
 * the application's: the id of that is stored, too, and may be that of an earlier one.
 */
function isOwnClient(
  { originParameters, trouble }: ServedConnection,
  secrets: ReturnType<typeof secretsIn> | undefined,
  registered: StoredOAuthClient | undefined,
): boolean {
  if (secrets !== undefined) return Object.hasOwn(secrets, "client_secret");
  const isOther =
    Object.hasOwn(originParameters, "client_id") && originParameters["client_id"] !== registered?.clientId;
  return isOther && !trouble?.clientUpdatedAt;
}

/** @param sealer undefined: no secret is opened. */
async function findKnownServer(
  { catalog, oauthClients, sealer }: Omit<AuthorizationServerOptions, "sealer"> & { readonly sealer?: Sealer },
  connection: ServedConnection,
  state?: string,
) {
  const provider = catalog.find(connection.providerName);
  if (provider !== undefined && !isFit(provider, connection)) return connectAgain(provider.name);
  if (provider?.oauth2 === undefined) return nowhereToRefresh(NO_ENDPOINT);
  const { oauth2 } = provider;
  const secrets = isGrantKind(provider.kind) && sealer !== undefined ? openSecrets(sealer, connection) : undefined;
  const found = await findClient({ oauthClients }, provider, connection, secrets);
  if (found === undefined) return nowhereToRefresh(NO_CLIENT);
  const { stored, bound } = found;
  const texts = { ...connection.originParameters, ...bound };
  const endpoints = endpointsOf(provider, oauth2, texts);
  // The connection lacks a value of the endpoint, or has one that the definition does not allow any more.
  if (endpoints === undefined)
    return oauth2.tokenEndpoint === undefined ? nowhereToRefresh(NO_ENDPOINT) : connectAgain(provider.name);
  const valuesAfter = (told: ToldMembers) => withAnswer(provider, texts, bound, "token", told);
  const habits = {
    ...oauth2,
    tokenParameters: filledParameters(oauth2.tokenParameters, texts),
    codeParameters: filledParameters(oauth2.codeParameters, state === undefined ? texts : { ...texts, state }),
    refreshParameters: filledParameters(oauth2.refreshParameters, texts),
    defaultExpiresInS: oauth2.defaultExpiresIn,
    allowPrivateNetwork: provider.allowPrivateNetwork,
  };
  return { stored, provider, secrets: secrets ?? {}, texts, ...habits, ...endpoints, valuesAfter };
}

/**
 * Finds the client of a connection: the application's, with the values that it is bound to, or the connection's own,
 * for which `stored` is undefined. Resolves to undefined when no client may be sent to this connection's hosts.
 *
 * @param secrets the connection's; undefined when none may be opened.
 */
export async function findClient(
  { oauthClients }: Pick<AuthorizationServerOptions, "oauthClients">,
  provider: Provider,
  connection: ServedConnection,
  secrets?: ReturnType<typeof secretsIn>,
): Promise<{ readonly stored: StoredOAuthClient | undefined; readonly bound: ValueTexts } | undefined> {
  const stored = await oauthClients.find(connection.applicationId, connection.providerName);
  const mayBeOwn = isOfClient(provider.kind) && !hasOwnPage(provider);
  const isOwn = provider.kind === "jwt_bearer" || (mayBeOwn && isOwnClient(connection, secrets, stored));
  if (isOwn) return { stored: undefined, bound: {} };
  if (stored === undefined || freeHostParameter(provider, stored) !== undefined) return undefined;
  const bound = boundValuesOf(provider, stored);
  const isBoundElsewhere = provider.connectionValues.some(
    ({ name, isHost }) => isHost && Object.hasOwn(bound, name) && connection.originParameters[name] !== bound[name],
  );
  return isBoundElsewhere ? undefined : { stored, bound };
}

/**
 * Creates the function that finds the application's client with which the calls of a connection are signed; undefined
 * when the connection has its own client, or when calls are not signed. It rejects with RelayError
 * PROVIDER_MISCONFIGURED when no client is stored, and opens no secret.
 */
export function createSigningClientFor(options: Pick<AuthorizationServerOptions, "catalog" | "oauthClients">) {
  return async (connection: ServedConnection): Promise<StoredOAuthClient | undefined> => {
    const provider = options.catalog.find(connection.providerName);
    if (provider?.oauth1 === undefined) return undefined;
    const found = await findClient(options, provider, connection);
    if (found !== undefined) return found.stored;
    throw new RelayError("PROVIDER_MISCONFIGURED", `The relay cannot sign this call: ${NO_CLIENT}`);
  };
}

/** A row of another kind holds no refresh token or secret values that this kind could use. */
function isFit({ kind }: Provider, { tokenType }: ServedConnection): boolean {
  return tokenType === undefined || isOfKind({ tokenType }, kind);
}

const NO_CLIENT = "no OAuth client is stored for it. The operator must add one with 'relay client put'.";
const NO_ENDPOINT = "no definition names the provider's token endpoint. The operator must add one in RELAY_PROVIDERS.";

function nowhereToRefresh(why: string): RelayError {
  return new RelayError("REFRESH_UNAVAILABLE", `The relay cannot refresh this user's access token: ${why}`);
}

function endpointsOf({ name, connectionValues }: Provider, oauth2: OAuth2, texts: ValueTexts) {
  // Nothing is sent to it: the name is only the key by which failures are counted.
  if (isSelfSigned({ oauth2 })) return { tokenEndpoint: name, refreshEndpoint: name, revocationEndpoint: undefined };
  const fill = (endpoint: string | undefined) => endpoint && fillEndpoint(endpoint, texts, connectionValues);
  const tokenEndpoint = fill(oauth2.tokenEndpoint);
  const refreshEndpoint = fill(oauth2.refreshEndpoint ?? oauth2.tokenEndpoint);
  if (!tokenEndpoint || !refreshEndpoint) return undefined;
  return { tokenEndpoint, refreshEndpoint, revocationEndpoint: fill(oauth2.revocationEndpoint) };
}

/** How an attempt to connect or disconnect ended; for the log. */
interface ConnectEvent {
  readonly what: "connect" | "disconnect";
  readonly applicationId: string;
  readonly provider: string;
  /** `success`, an OAuth error code, or the result of the revocation. */
  readonly outcome: string;
}

/** What making and ending connections needs; everything is a value or an interface. */
export interface AuthorizationOptions extends CallerOptions {
  readonly applications: Pick<ApplicationStore, "findByPublicKey" | "iconOf">;
  readonly catalog: ProviderCatalog;
  readonly connections: Pick<ConnectionStore, "find" | "put" | "list" | "delete">;
  readonly oauthClients: Pick<OAuthClientStore, "find" | "list">;
  readonly sealer: Sealer;
  readonly tickets: Tickets;
  readonly pending: Pending;
  /** Asks an authorization server; rejects when there is no answer. Has a deadline of its own. */
  readonly send: (endpoint: TokenEndpoint, request: TokenRequest) => Promise<TokenEndpointAnswer>;
  /** `https://relay.example.com`, without a slash at the end; undefined until the operator sets it. */
  readonly publicUrl: () => string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onEvent: (event: ConnectEvent) => void;
  readonly onFault: (where: string, error: unknown) => void;
}
