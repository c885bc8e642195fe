import { calculatePKCECodeChallenge, generateRandomCodeVerifier } from "oauth4webapi";
import type { Application } from "../applications/application.js";
import { RelayError } from "../model/errors.js";
import { parseAnswers, type ValueTexts, valuesOf, withDefaults } from "../providers/connection-value.js";
import { fillEndpoint } from "../providers/endpoint.js";
import { type ConnectionValue, hasOwnPage, type OAuth1, type OAuth2, type Provider } from "../providers/provider.js";
import type { AuthorizationOptions } from "./authorization-server.js";
import { type ConnectOutcome, callbackUrl } from "./callback.js";
import { boundValuesOf, filledParameters, unboundValuesOf } from "./connection-values.js";
import type { StoredOAuthClient } from "./oauth-client.js";
import { agreementUrlFrom, requestTemporary } from "./signed-flow.js";
import { createSecret, type StatePayload } from "./tickets.js";

/** Who connects what, decided and proven. */
interface ConnectRequest {
  readonly application: Application;
  readonly userId: string;
  readonly provider: Provider;
  /** Cookie of the browser. */
  readonly browser: string;
  /** Parameters of the provider's origin that are known so far, as entered. */
  readonly originParameters: ReadonlyMap<string, string>;
  /** Those that the application has fixed: they take precedence, and the user is not asked for them. */
  readonly fixed: ValueTexts;
  /** Whether the parameters answer a question to the user, who is then told what is wrong with them. */
  readonly isAnswer: boolean;
  readonly scope: string | undefined;
  /** Further parameters of the authorization request: those that the definition lets applications set. */
  readonly authorizationParameters: Readonly<Record<string, string>>;
  readonly redirectUri: string | undefined;
  readonly openerOrigin: string | undefined;
  /** Secret of the page's session that the browser comes from. */
  readonly session: string | undefined;
  /** Whether the user has confirmed on a page whose account is connected to what. */
  readonly isConfirmed: boolean;
}

/** Where the browser goes first; `ended`: the provider refused to begin the attempt. */
type Start =
  | { readonly kind: "redirect"; readonly uri: string }
  | { readonly kind: "ended"; readonly outcome: ConnectOutcome }
  | Confirmation
  | Question;

/** The user has to confirm on a page of ours. */
interface Confirmation {
  readonly kind: "confirm";
  /** The scopes that will be requested, by the provider's names; empty: those that the client is registered for. */
  readonly scopes: readonly string[];
}

/** The user has to enter values that are stored with the connection. */
export interface Question {
  readonly kind: "ask";
  readonly values: readonly ConnectionValue[];
  /** Which value was wrong, and why; undefined: nothing was entered yet. */
  readonly problem: { readonly parameter: string; readonly problem: string } | undefined;
}

/**
 * Begins the authorization code flow (RFC 6749 section 4.1), with PKCE if the provider supports it (RFC 7636), or the
 * flow of OAuth 1.0a (RFC 5849 section 2). Rejects with RelayError INVALID_PROVIDER or PROVIDER_MISCONFIGURED when the
 * provider cannot be connected this way, OVERLOADED when the application has too many attempts in progress,
 * STORE_UNAVAILABLE.
 */
export async function startAuthorization(options: AuthorizationOptions, request: ConnectRequest): Promise<Start> {
  const { application, provider } = request;
  requireFlow(provider);
  const client = requireClient(provider, await options.oauthClients.find(application.id, provider.name));
  const asked = originParametersFor(request, client);
  if ("kind" in asked) return asked;
  const attempt = { request, client, values: asked.values, callback: callbackUrl(options.publicUrl()) };
  if (!request.isConfirmed) return { kind: "confirm", scopes: scopesFor(request, client) };
  const { oauth2, oauth1 } = provider;
  if (oauth1 !== undefined) return startSigned(options, oauth1, attempt);
  const uri = oauth2 && (await startCode(options, oauth2, attempt));
  if (uri === undefined) throw cannotConnect(provider);
  return { kind: "redirect", uri };
}

/** What is known before the provider is involved. */
interface Attempt {
  readonly request: ConnectRequest;
  readonly client: StoredOAuthClient;
  /** Values to store with the connection. */
  readonly values: ValueTexts;
  /** The relay's own redirection endpoint. */
  readonly callback: string;
}

/** Resolves to the address of the authorization request (RFC 6749 section 4.1.1), undefined when a value is missing. */
async function startCode(options: AuthorizationOptions, oauth2: OAuth2, attempt: Attempt): Promise<string | undefined> {
  const { request, client, values, callback: redirectUri } = attempt;
  const endpoint = fillEndpoint(oauth2.authorizationEndpoint ?? "", values, request.provider.connectionValues);
  if (endpoint === undefined) return undefined;
  const codeVerifier = oauth2.pkce ? generateRandomCodeVerifier() : undefined;
  const state = await issueState(options, attempt, { codeVerifier });
  const codeChallenge = codeVerifier && (await calculatePKCECodeChallenge(codeVerifier));
  const scope = scopeFor(request, client) || oauth2.defaultScopes.join(oauth2.scopeSeparator);
  const { clientId } = client;
  const authorizationParameters = {
    ...filledParameters(oauth2.authorizationParameters, values),
    ...request.authorizationParameters,
  };
  const habits = { ...oauth2, authorizationParameters };
  return authorizationUrlFrom({ endpoint, clientId, redirectUri, scope, state, codeChallenge }, habits);
}

/**
 * Requests temporary credentials, and sends the browser to the page where the user gives consent. The callback address
 * carries a `state` that identifies the attempt.
 */
async function startSigned(options: AuthorizationOptions, oauth1: OAuth1, attempt: Attempt): Promise<Start> {
  const { request, client, values, callback } = attempt;
  const { provider } = request;
  const state = createSecret();
  const flow = { options, provider, client, values, connectionId: state };
  const temporary = await requestTemporary(flow, `${callback}?${new URLSearchParams({ state })}`);
  if ("error" in temporary) return { kind: "ended", outcome: { outcome: "error", error: temporary.error } };
  const uri = agreementUrlFrom(oauth1, provider, values, temporary, scopeFor(request, client));
  if (uri === undefined) throw cannotConnect(provider);
  await issueState(options, attempt, { codeVerifier: undefined, temporary }, state);
  return { kind: "redirect", uri };
}

/** Stores what the callback must know. Resolves to the `state` that identifies it. */
async function issueState(
  { tickets }: Pick<AuthorizationOptions, "tickets">,
  { request, values: originParameters }: Attempt,
  secrets: Pick<StatePayload, "codeVerifier" | "temporary">,
  state?: string,
): Promise<string> {
  const { application, userId, provider, browser, redirectUri, openerOrigin, session } = request;
  const { publicKey } = application;
  const payload = { publicKey, providerName: provider.name, originParameters, redirectUri, openerOrigin, session };
  const owner = { applicationId: application.id, userId };
  return (await tickets.issue("STATE", owner, browser, { ...payload, ...secrets }, { secret: state })).secret;
}

/** Whether users can connect the provider in a browser at all. */
export function hasAuthorizationFlow({ oauth2, oauth1 }: Provider): boolean {
  const { authorizationEndpoint, tokenEndpoint } = oauth1 ?? oauth2 ?? {};
  return authorizationEndpoint !== undefined && tokenEndpoint !== undefined;
}

/**
 * Checks that users can connect each of the providers for the application. Rejects with RelayError INVALID_PROVIDER
 * (not in a browser), PROVIDER_MISCONFIGURED (no OAuth client, or one that lacks a value), STORE_UNAVAILABLE.
 */
export async function requireConnectable(
  { oauthClients }: Pick<AuthorizationOptions, "oauthClients">,
  application: Application,
  providers: readonly Provider[],
): Promise<void> {
  const byClient = providers.filter(hasOwnPage);
  for (const provider of byClient) requireFlow(provider);
  const clients = new Map((await oauthClients.list(application.id)).map((client) => [client.providerName, client]));
  for (const provider of byClient) requireClient(provider, clients.get(provider.name));
}

function requireFlow(provider: Provider): void {
  if (!hasAuthorizationFlow(provider)) throw cannotConnect(provider);
}

function requireClient(provider: Provider, client: StoredOAuthClient | undefined): StoredOAuthClient {
  if (client === undefined) {
    throw new RelayError(
      "PROVIDER_MISCONFIGURED",
      `The application has no OAuth client for ${provider.name}. The operator must add one with 'relay client put'.`,
    );
  }
  const [missing] = unboundValuesOf(provider, client);
  if (missing === undefined) return client;
  throw new RelayError(
    "PROVIDER_MISCONFIGURED",
    `The application's OAuth client for ${provider.name} lacks a value. The operator must set it with 'relay client put --param ${missing}'.`,
  );
}

/** Values that the client is bound to are not asked for, and take precedence over those of the application. */
function originParametersFor(
  { provider, originParameters, fixed, isAnswer }: ConnectRequest,
  client: StoredOAuthClient,
): { readonly values: Readonly<Record<string, string>> } | Question {
  const bound = { ...fixed, ...boundValuesOf(provider, client) };
  const asked = valuesOf(provider, "asked");
  const isAsked = ([name]: readonly [string, string]) => asked.some((value) => value.name === name);
  const given = new Map([...originParameters, ...Object.entries(bound)].filter(isAsked));
  const parsed = parseAnswers(given, provider);
  const values = asked.filter(({ name }) => !Object.hasOwn(bound, name));
  // The user is asked once for values that have a default, too.
  if ("values" in parsed && (isAnswer || values.every(({ name }) => given.has(name))))
    return { values: { ...withDefaults(parsed.values, provider, "asked"), ...bound } };
  return { kind: "ask", values, problem: isAnswer && "problem" in parsed ? parsed : undefined };
}

/** Empty: the definition's default. */
function scopeFor({ scope }: ConnectRequest, client: StoredOAuthClient): string {
  return scope || client.scope;
}

function scopesFor(request: ConnectRequest, client: StoredOAuthClient): readonly string[] {
  const { scopeSeparator = " ", defaultScopes = [] } = request.provider.oauth2 ?? {};
  const scope = scopeFor(request, client);
  return scope === "" ? defaultScopes : scope.split(scopeSeparator).filter((each) => each !== "");
}

function cannotConnect({ name }: Provider): RelayError {
  return new RelayError(
    "INVALID_PROVIDER",
    `${name} cannot be connected in a browser. The operator must store its tokens with 'relay connection put'.`,
  );
}

/** The parts of one authorization request (RFC 6749 section 4.1.1). */
interface AuthorizationRequest {
  /** The authorization endpoint, with the parameters of its host filled in. */
  readonly endpoint: string;
  readonly clientId: string;
  /** Where the provider sends the browser back to: the relay's callback. */
  readonly redirectUri: string;
  /** As the provider writes it; empty: the parameter is left out. */
  readonly scope: string;
  readonly state: string;
  /** S256 challenge (RFC 7636 section 4.3); undefined without PKCE. */
  readonly codeChallenge: string | undefined;
}

/** Builds the address that the browser is sent to. Parameters that the endpoint already has are kept. Pure. */
export function authorizationUrlFrom(
  request: AuthorizationRequest,
  habits: Pick<OAuth2, "clientIdParameter" | "authorizationParameters">,
): string {
  const url = new URL(request.endpoint);
  const set = (name: string, value: string) => url.searchParams.set(name, value);
  set("response_type", "code");
  set(habits.clientIdParameter, request.clientId);
  set("redirect_uri", request.redirectUri);
  if (request.scope !== "") set("scope", request.scope);
  set("state", request.state);
  if (request.codeChallenge !== undefined) {
    set("code_challenge", request.codeChallenge);
    set("code_challenge_method", "S256");
  }
  for (const [name, value] of Object.entries(habits.authorizationParameters)) if (value !== "") set(name, value);
  return url.href;
}
