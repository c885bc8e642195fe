import type { Application } from "../applications/application.js";
import {
  type CallerProof,
  requireAllowedCaller,
  requireApplication,
  requireCallerIds,
} from "../applications/caller.js";
import { formatError, RelayError } from "../model/errors.js";
import { requireProvider } from "../providers/catalog.js";
import { parseAnswers } from "../providers/connection-value.js";
import { hasOwnPage, type Provider } from "../providers/provider.js";
import type { AuthorizationOptions } from "./authorization-server.js";
import { requireOpenerOrigin, requirePublicUrl, requireRedirectUri } from "./callback.js";
import type { ConnectionState } from "./connection.js";
import { toldStateOf } from "./refreshable.js";
import { hasAuthorizationFlow, requireConnectable } from "./start.js";
import { linkGone, type OpenTicket, type SessionPayload } from "./tickets.js";

/** A browser that has proven that it may connect accounts for one user. */
export interface ConnectSession extends SessionPayload {
  readonly application: Application;
  readonly userId: string;
  /** Cookie of the browser. */
  readonly browser: string;
  /** Secret of the page's session; undefined when the browser has none yet. */
  readonly session: string | undefined;
  /** Secret of the link that the page's session will use up; undefined when there is none. */
  readonly link?: string;
}

/** The query of a connect address that an application built itself. */
export interface ConnectSessionQuery extends Omit<SessionPayload, "authorizationParameters" | "originParameters"> {
  readonly userId: string;
  readonly proof: CallerProof;
}

type Options = Pick<AuthorizationOptions, "applications" | "openPrivateKeyHash" | "tickets" | "catalog" | "now">;

/**
 * Begins a connect session with the same proof as a call: the public key alone where that is enough, or the user's
 * signature. Rejects with RelayError CALL_FORMAT_ERROR, INVALID_PUBLIC_KEY or CALLER_NOT_ALLOWED.
 */
export async function connectSessionFromQuery(
  options: Options,
  query: ConnectSessionQuery,
  browser: string,
): Promise<ConnectSession> {
  requireCallerIds(query);
  const application = await requireApplication(options, query);
  if (application.callerAuth === "PRIVATE_KEY") throw linkNeeded();
  requireAllowedCaller(options, application, query);
  requireRedirectUri(query.redirectUri, application.allowedRedirectUris);
  requireOpenerOrigin(query.openerOrigin, application.allowedOrigins);
  const { proof, ...asked } = query;
  // Unknown names stay: dropping them might leave an empty list, which means all providers.
  const providers = query.providers.map((name) => options.catalog.find(name)?.name ?? name);
  return { ...asked, application, providers, browser, session: undefined };
}

/**
 * Begins a connect session with a link, which the page's session uses up: until then, whatever fails, the link can be
 * opened again. Rejects with RelayError CALLER_NOT_ALLOWED when it is unknown, was used before or has expired.
 *
 * @param openerOrigin comes from whoever opens the link, not from whoever made it.
 */
export async function connectSessionFromLink(
  options: Options,
  link: string,
  openerOrigin: string | undefined,
  browser: string,
): Promise<ConnectSession> {
  const ticket = await options.tickets.find("LINK", link, "");
  if (ticket === undefined) throw linkGone();
  const payload = { ...ticket.payload, openerOrigin };
  return { ...payload, ...(await ownerOf(options, { ...ticket, payload })), browser, session: undefined, link };
}

/**
 * Continues the session of an open page. Rejects with CALLER_NOT_ALLOWED when it is another browser's or has expired.
 */
export async function connectSessionFromSecret(
  options: Options,
  session: string,
  browser: string,
): Promise<ConnectSession> {
  const ticket = await options.tickets.find("SESSION", session, browser);
  if (ticket === undefined)
    throw goneError("This page has been open too long, or was opened in another browser. Open it again.");
  return { ...ticket.payload, ...(await ownerOf(options, ticket)), browser, session };
}

/**
 * Gives a connect session a secret, so that its page can be used without the proof it began with. Rejects with RelayError
 * CALLER_NOT_ALLOWED when its link has been used meanwhile.
 */
export async function withSession(
  options: Options,
  connectSession: ConnectSession,
): Promise<ConnectSession & { readonly session: string }> {
  if (connectSession.session !== undefined) return { ...connectSession, session: connectSession.session };
  const { application, userId, browser, session: _, link, ...payload } = connectSession;
  const owner = { applicationId: application.id, userId };
  const { secret: session } = await options.tickets.issue("SESSION", owner, browser, payload, { link });
  return { ...connectSession, session };
}

/**
 * Checks the application again: since the ticket was issued it may have been disabled, replaced by another one with the
 * same public key, or given other lists of addresses.
 */
async function ownerOf(options: Options, { applicationId, userId, payload }: OpenTicket<"LINK" | "SESSION">) {
  const application = await requireApplication(options, payload);
  if (application.id !== applicationId) throw goneError("The application of this link or page no longer exists.");
  requireRedirectUri(payload.redirectUri, application.allowedRedirectUris);
  requireOpenerOrigin(payload.openerOrigin, application.allowedOrigins);
  return { application, userId };
}

/**
 * Throws RelayError CALLER_NOT_ALLOWED unless a link began the session.
 *
 * Keys that are entered on a page go to the user that the page is for. With the public key and a signature for their
 * own user, anybody could build a permanent address and send others to it, and no provider asks for consent. Only the
 * application can make a link, and it works once.
 */
export function requireLink({ originParameters }: Pick<ConnectSession, "originParameters">): void {
  if (originParameters === undefined) throw linkNeeded("Keys for this provider can only be entered through a link.");
}

function linkNeeded(what = "This application connects users only through links."): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    `${what} Make one with the application's private key (POST /oauth/connect-links) and send the browser there.`,
  );
}

function goneError(message: string): RelayError {
  return new RelayError("CALLER_NOT_ALLOWED", message);
}

/** Most connections of one user that are read; the catalogue has fewer providers. */
const MAX_CONNECTIONS = 1000;

/** One line of the connect page. */
export interface Offer {
  readonly provider: Provider;
  /** Undefined when the user has not connected the provider. */
  readonly state: ConnectionState | undefined;
  /** Whether the application can connect it in a browser. */
  readonly canConnect: boolean;
}

/**
 * Lists what a connect page offers its user: the providers that can be connected and those that already are. Sorted by
 * display name, or in the order of the session's list if it has one.
 */
export async function offersFor(
  {
    catalog,
    connections,
    oauthClients,
    now,
  }: Pick<AuthorizationOptions, "catalog" | "connections" | "oauthClients" | "now">,
  session: Pick<ConnectSession, "application" | "userId" | "providers"> & { readonly originParameters?: unknown },
): Promise<readonly Offer[]> {
  const { application, userId, providers: wanted } = session;
  const isLinked = session.originParameters !== undefined;
  const clients = new Set((await oauthClients.list(application.id)).map(({ providerName }) => providerName));
  const found = await connections.list({ applicationId: application.id, userId, limit: MAX_CONNECTIONS });
  const states = new Map(found.map((connection) => [connection.providerName, toldStateOf(connection, now()).state]));
  const offerOf = (provider: Provider): Offer => {
    const state = states.get(provider.name);
    // Any application could make users enter keys of any provider, so a page offers only those that were asked for.
    const canEnter = !hasOwnPage(provider) && isLinked && (wanted.length > 0 || state !== undefined);
    return { provider, state, canConnect: canEnter || (clients.has(provider.name) && hasAuthorizationFlow(provider)) };
  };
  const named = wanted.length > 0 ? wanted : [...clients, ...states.keys()];
  const offers = providersNamed(catalog, named)
    .map(offerOf)
    .filter(({ state, canConnect }) => canConnect || state !== undefined);
  return wanted.length > 0 ? offers : offers.sort(byDisplayName);
}

function providersNamed(catalog: AuthorizationOptions["catalog"], names: readonly string[]): readonly Provider[] {
  return [...new Set(names.flatMap((name) => catalog.find(name) ?? []))];
}

const COLLATOR = new Intl.Collator("en");

function byDisplayName(one: Offer, other: Offer): number {
  return COLLATOR.compare(one.provider.displayName, other.provider.displayName);
}

/** Path of the connect page; one provider's is below it. */
export const CONNECT_PATH = "/oauth/connect";

/** Most providers that a connect page is opened for by name. */
export const MAX_PROVIDERS = 200;
const MAX_SCOPE_LENGTH = 4096;

/** What a link is made from. */
interface ConnectLinkInput {
  readonly application: Application;
  readonly userId: string;
  /** Name or alias of the one provider to connect; empty: the link opens the page. */
  readonly providerName: string;
  /** Those that the page lists; all of the application's when empty. */
  readonly providers: readonly string[];
  readonly redirectUri: string | undefined;
  readonly scope: string | undefined;
  readonly originParameters: ReadonlyMap<string, string>;
  /** Parameters of the authorization request that the definition lets applications set. */
  readonly authorizationParameters: Readonly<Record<string, string>>;
}

/** What making links needs. */
export type ConnectLinkOptions = Pick<
  AuthorizationOptions,
  "catalog" | "connections" | "oauthClients" | "tickets" | "publicUrl" | "now"
>;

/** A link, and when it expires if nobody opens it, in milliseconds since the epoch. */
export interface ConnectLink {
  readonly uri: string;
  readonly expiresAt: number;
}

/**
 * Makes an address at which one browser may connect accounts for a user. The caller has proven that it is the
 * application. Rejects with RelayError INVALID_PROVIDER, CALLER_NOT_ALLOWED (redirect_uri), CALL_FORMAT_ERROR
 * (parameters of the origin), PROVIDER_MISCONFIGURED (no public address, no OAuth client for a provider, nothing on the
 * page), OVERLOADED, STORE_UNAVAILABLE.
 */
export async function createConnectLink(options: ConnectLinkOptions, input: ConnectLinkInput): Promise<ConnectLink> {
  const { application, userId, redirectUri, scope } = input;
  const base = requirePublicUrl(options.publicUrl()) + CONNECT_PATH;
  const find = (name: string) => requireProvider(options, name);
  const provider = input.providerName === "" ? undefined : find(input.providerName);
  requireLimits(input);
  // A link to one provider opens nothing else.
  const providers = provider === undefined ? input.providers.map(find) : [provider];
  requireRedirectUri(redirectUri, application.allowedRedirectUris);
  const originParameters = originParametersFrom(input, provider);
  // Reported to whoever makes the link, instead of later to the user who opens it.
  await requireConnectable(options, application, providers);
  if (providers.length === 0) await requireOffers(options, input);
  const { publicKey, id: applicationId } = application;
  const names = providers.map(({ name }) => name);
  const authorizationParameters = authorizationParametersFrom(input, provider);
  const isPage = provider === undefined;
  const ticket = {
    ...{ publicKey, providers: names, redirectUri, openerOrigin: undefined, scope, isPage },
    originParameters,
    authorizationParameters,
  };
  const { secret, expiresAt } = await options.tickets.issue("LINK", { applicationId, userId }, undefined, ticket);
  return { uri: `${base}${provider === undefined ? "" : `/${provider.name}`}?link=${secret}`, expiresAt };
}

/** Rejects with PROVIDER_MISCONFIGURED when a page of all providers would have none to connect or disconnect. */
async function requireOffers(options: Parameters<typeof offersFor>[0], input: ConnectLinkInput): Promise<void> {
  if ((await offersFor(options, input)).length > 0) return;
  throw new RelayError(
    "PROVIDER_MISCONFIGURED",
    "The application has no OAuth client for any provider, so the page would be empty. The operator must add one with 'relay client put'.",
  );
}

/** A link is stored until it expires, so its size is limited. */
function requireLimits({ providers, scope = "" }: ConnectLinkInput): void {
  if (providers.length > MAX_PROVIDERS) throw formatError(`providers lists more than ${MAX_PROVIDERS} providers.`);
  if (scope.length > MAX_SCOPE_LENGTH) throw formatError(`scope is longer than ${MAX_SCOPE_LENGTH} characters.`);
}

function authorizationParametersFrom({ authorizationParameters }: ConnectLinkInput, provider: Provider | undefined) {
  const allowed = provider?.oauth2?.connectParameters ?? [];
  if (provider === undefined && Object.keys(authorizationParameters).length > 0)
    throw formatError("authorization_parameters need a single provider: set provider_name.");
  for (const [name, value] of Object.entries(authorizationParameters)) {
    if (!allowed.includes(name)) {
      throw formatError(
        "authorization_parameters contains a parameter that the provider's definition does not list in connectParameters.",
      );
    }
    if (value.length > MAX_SCOPE_LENGTH)
      throw formatError(`authorization_parameters.${name} is longer than ${MAX_SCOPE_LENGTH} characters.`);
  }
  return authorizationParameters;
}

function originParametersFrom({ originParameters }: ConnectLinkInput, provider: Provider | undefined) {
  if (originParameters.size === 0) return {};
  if (provider === undefined) throw formatError("origin_parameters need a single provider: set provider_name.");
  const parsed = parseAnswers(originParameters, provider, "asked", true);
  if ("values" in parsed) return parsed.values;
  throw formatError(`origin_parameters.${parsed.parameter} ${parsed.problem}.`);
}
