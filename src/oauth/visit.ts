import type { Application } from "../applications/application.js";
import {
  type CallerProof,
  requireAllowedCaller,
  requireApplication,
  requireCallerIds,
} from "../applications/caller.js";
import { RelayError } from "../model/errors.js";
import type { Provider } from "../providers/provider.js";
import { requireRedirectUri } from "./callback.js";
import type { ConnectionState } from "./connection.js";
import { toldStateOf } from "./freshness.js";
import type { AuthorizationOptions } from "./options.js";
import { hasAuthorizationFlow } from "./start.js";
import type { LinkPayload, OpenTicket, SessionPayload } from "./tickets.js";

/** A browser that may connect accounts for one user, however it proved that. */
export interface Visit extends SessionPayload {
  readonly application: Application;
  readonly userId: string;
  /** Cookie of the browser. */
  readonly browser: string;
  /** Secret of the page's session; undefined when the browser has none yet. */
  readonly session: string | undefined;
}

/** A visit that a link began. */
export interface LinkVisit extends Visit, LinkPayload {}

/** What an address that an application made itself says. */
export interface VisitQuery {
  readonly publicKey: string;
  readonly userId: string;
  readonly proof: CallerProof;
  readonly providers: readonly string[];
  readonly redirectUri: string | undefined;
  readonly scope: string | undefined;
  readonly isPage: boolean;
}

type Options = Pick<AuthorizationOptions, "applications" | "openPrivateKeyHash" | "tickets" | "catalog">;

/**
 * Begins a visit with the proof of a call: the public key alone where that is enough, or the user's signature. Rejects
 * with RelayError CALL_FORMAT_ERROR, INVALID_PUBLIC_KEY or CALLER_NOT_ALLOWED.
 */
export async function visitFromQuery(options: Options, query: VisitQuery, browser: string): Promise<Visit> {
  requireCallerIds(query);
  const application = await requireApplication(options, query);
  if (application.callerAuth === "PRIVATE_KEY") throw linkNeeded();
  requireAllowedCaller(options, application, query);
  requireRedirectUri(query.redirectUri, application.allowedRedirectUris);
  const { userId, publicKey, redirectUri, scope, isPage } = query;
  // A name that nobody has stays: without it the list might be empty, and that would mean all of them.
  const providers = query.providers.map((name) => options.catalog.find(name)?.name ?? name);
  return { application, userId, publicKey, providers, redirectUri, scope, isPage, browser, session: undefined };
}

/** Opens a link, once. Rejects with RelayError CALLER_NOT_ALLOWED when it is unknown, was opened or has ended. */
export async function visitFromLink(options: Options, secret: string, browser: string): Promise<LinkVisit> {
  const ticket = await options.tickets.take("LINK", secret, "");
  if (ticket === undefined) throw goneError("This link was used before or has ended. Ask for a new one.");
  return { ...ticket.payload, ...(await ownerOf(options, ticket)), browser, session: undefined };
}

/** Goes on with an open page. Rejects with RelayError CALLER_NOT_ALLOWED when it is another browser's or has ended. */
export async function visitFromSession(options: Options, session: string, browser: string): Promise<Visit> {
  const ticket = await options.tickets.find("SESSION", session, browser);
  if (ticket === undefined) throw goneError("This page was open too long, or in another browser. Open it again.");
  return { ...ticket.payload, ...(await ownerOf(options, ticket)), browser, session };
}

/** Gives a visit a session, so that its page can be used without the proof it began with. */
export async function withSession(options: Options, visit: Visit): Promise<Visit & { readonly session: string }> {
  if (visit.session !== undefined) return { ...visit, session: visit.session };
  const { application, userId, publicKey, providers, redirectUri, scope, isPage, browser } = visit;
  const payload = { publicKey, providers, redirectUri, scope, isPage };
  const owner = { applicationId: application.id, userId };
  const { secret: session } = await options.tickets.issue("SESSION", owner, browser, payload);
  return { ...visit, session };
}

/** The application may be disabled since, be another one with the same public key, or list other addresses. */
async function ownerOf(options: Options, { applicationId, userId, payload }: OpenTicket<"LINK" | "SESSION">) {
  const application = await requireApplication(options, payload);
  if (application.id !== applicationId) throw goneError("This link or page is of an application that is gone.");
  requireRedirectUri(payload.redirectUri, application.allowedRedirectUris);
  return { application, userId };
}

function linkNeeded(): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    "This application connects users by links only. Make one with its private key (POST /oauth/connect-links) and send the browser there.",
  );
}

function goneError(message: string): RelayError {
  return new RelayError("CALLER_NOT_ALLOWED", message);
}

/** More connections of one user are not looked at; the catalogue has fewer providers. */
const MAX_CONNECTIONS = 1000;

/** One line of the connect page. */
export interface Offer {
  readonly provider: Provider;
  /** Undefined where the user has connected nothing. */
  readonly state: ConnectionState | undefined;
  /** Whether the application can connect it in a browser. */
  readonly canConnect: boolean;
}

/**
 * What a page offers its user: the application's providers, those that can be connected and those that are, by display
 * name; in the order of the visit's list where it has one.
 */
export async function offersFor(
  {
    catalog,
    connections,
    oauthClients,
    now,
  }: Pick<AuthorizationOptions, "catalog" | "connections" | "oauthClients" | "now">,
  { application, userId, providers: wanted }: Pick<Visit, "application" | "userId" | "providers">,
): Promise<readonly Offer[]> {
  const clients = new Set((await oauthClients.list(application.id)).map(({ providerName }) => providerName));
  const found = await connections.list({ applicationId: application.id, userId, limit: MAX_CONNECTIONS });
  const states = new Map(found.map((connection) => [connection.providerName, toldStateOf(connection, now()).state]));
  const offerOf = (provider: Provider): Offer => ({
    provider,
    state: states.get(provider.name),
    canConnect: clients.has(provider.name) && hasAuthorizationFlow(provider),
  });
  const listed = wanted.length > 0 ? providersNamed(catalog, wanted) : byDisplayName(catalog.list());
  return listed.map(offerOf).filter(({ state, canConnect }) => canConnect || state !== undefined);
}

function providersNamed(catalog: AuthorizationOptions["catalog"], names: readonly string[]): readonly Provider[] {
  return [...new Set(names.flatMap((name) => catalog.find(name) ?? []))];
}

function byDisplayName(providers: readonly Provider[]): readonly Provider[] {
  return [...providers].sort((one, other) => one.displayName.localeCompare(other.displayName, "en"));
}
