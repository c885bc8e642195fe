import type { Provider } from "../providers/provider.js";
import type { ConnectionState } from "../tokens/connection.js";
import { toldStateOf } from "../tokens/connection-state.js";
import type { AuthorizationOptions } from "./options.js";
import { hasAuthorizationFlow } from "./start.js";
import type { Visit } from "./visit.js";

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
