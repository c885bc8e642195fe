import type { Application } from "../applications/application.js";
import { formatError, RelayError } from "../model/errors.js";
import { parseOriginAnswers } from "../providers/origin.js";
import type { Provider } from "../providers/provider.js";
import { requirePublicUrl, requireRedirectUri } from "./callback.js";
import type { AuthorizationOptions } from "./options.js";
import { requireConnectable } from "./start.js";
import { offersFor } from "./visit.js";

/** Path of the connect page; one provider's is below it. */
export const CONNECT_PATH = "/oauth/connect";

/** Most providers that a connect page is opened for by name. */
export const MAX_PROVIDERS = 200;
const MAX_SCOPE_LENGTH = 4096;

/** What a link is made for. */
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
}

/** A link, and when it ends unopened in milliseconds since the epoch. */
export interface ConnectLink {
  readonly uri: string;
  readonly expiresAt: number;
}

/**
 * Makes an address at which one browser may connect accounts for a user. The caller has proven to be the application.
 * Rejects with RelayError INVALID_PROVIDER, CALLER_NOT_ALLOWED (redirect_uri), CALL_FORMAT_ERROR (parameters of the
 * origin), PROVIDER_MISCONFIGURED (no public address, no OAuth client for a provider, nothing on the page), OVERLOADED,
 * STORE_UNAVAILABLE.
 */
export async function createConnectLink(
  options: Pick<AuthorizationOptions, "catalog" | "connections" | "oauthClients" | "tickets" | "publicUrl" | "now">,
  input: ConnectLinkInput,
): Promise<ConnectLink> {
  const { application, userId, redirectUri, scope } = input;
  const base = requirePublicUrl(options.publicUrl()) + CONNECT_PATH;
  const find = (name: string) => requireProvider(options, name);
  const provider = input.providerName === "" ? undefined : find(input.providerName);
  requireLimits(input);
  // A link to one provider opens nothing else.
  const providers = provider === undefined ? input.providers.map(find) : [provider];
  requireRedirectUri(redirectUri, application.allowedRedirectUris);
  const originParameters = originParametersFrom(input, provider);
  // Said to who makes the link, and not to the user who opens it.
  await requireConnectable(options, application, providers);
  if (providers.length === 0) await requireOffers(options, input);
  const { publicKey, id: applicationId } = application;
  const names = providers.map(({ name }) => name);
  const ticket = { publicKey, providers: names, redirectUri, scope, isPage: provider === undefined, originParameters };
  const { secret, expiresAt } = await options.tickets.issue("LINK", { applicationId, userId }, undefined, ticket);
  return { uri: `${base}${provider === undefined ? "" : `/${provider.name}`}?link=${secret}`, expiresAt };
}

/** A page of all providers has at least one, to connect or to disconnect. */
async function requireOffers(options: Parameters<typeof offersFor>[0], input: ConnectLinkInput): Promise<void> {
  if ((await offersFor(options, input)).length > 0) return;
  throw new RelayError(
    "PROVIDER_MISCONFIGURED",
    "The application has no OAuth client for any provider, so that the page would be empty. The operator must add one with 'relay client put'.",
  );
}

/** Rejects with RelayError INVALID_PROVIDER. */
export function requireProvider({ catalog }: Pick<AuthorizationOptions, "catalog">, name: string): Provider {
  const provider = catalog.find(name);
  if (provider !== undefined) return provider;
  throw new RelayError("INVALID_PROVIDER", "There is no provider of this name. Check the provider's name.");
}

/** A link is kept until it ends, so it must not be of any size. */
function requireLimits({ providers, scope = "" }: ConnectLinkInput): void {
  if (providers.length > MAX_PROVIDERS) throw formatError(`providers names more than ${MAX_PROVIDERS}.`);
  if (scope.length > MAX_SCOPE_LENGTH) throw formatError(`scope is longer than ${MAX_SCOPE_LENGTH} characters.`);
}

function originParametersFrom({ originParameters }: ConnectLinkInput, provider: Provider | undefined) {
  if (originParameters.size === 0) return {};
  if (provider === undefined) throw formatError("origin_parameters are of one provider: name it in provider_name.");
  const parsed = parseOriginAnswers(originParameters, provider);
  if ("values" in parsed) return parsed.values;
  throw formatError(`origin_parameters.${parsed.parameter} ${parsed.problem}.`);
}
