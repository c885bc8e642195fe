import type { Application } from "../applications/application.js";
import { RelayError } from "../errors.js";
import { parseOriginAnswers } from "../providers/origin-parameters.js";
import type { Provider } from "../providers/provider.js";
import { requirePublicUrl } from "./callback-url.js";
import type { AuthorizationOptions } from "./options.js";
import { requireRedirectUri } from "./redirect.js";

/** Path of the connect page; one provider's is below it. */
export const CONNECT_PATH = "/oauth/connect";

/** What a link is made for. */
export interface ConnectLinkInput {
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
 * origin), PROVIDER_MISCONFIGURED (no public address), OVERLOADED, STORE_UNAVAILABLE.
 */
export async function createConnectLink(
  options: Pick<AuthorizationOptions, "catalog" | "tickets" | "publicUrl">,
  input: ConnectLinkInput,
): Promise<ConnectLink> {
  const { application, userId, redirectUri, scope } = input;
  const base = requirePublicUrl(options.publicUrl()) + CONNECT_PATH;
  const find = (name: string) => requireProvider(options, name);
  const provider = input.providerName === "" ? undefined : find(input.providerName);
  const providers = input.providers.map((name) => find(name).name);
  requireRedirectUri(redirectUri, application.allowedRedirectUris);
  const { secret, expiresAt } = await options.tickets.issue(
    "LINK",
    { applicationId: application.id, userId },
    undefined,
    {
      publicKey: application.publicKey,
      providerName: provider?.name,
      providers,
      redirectUri,
      scope,
      isPage: provider === undefined,
      originParameters: originParametersFrom(input, provider),
    },
  );
  return { uri: `${base}${provider === undefined ? "" : `/${provider.name}`}?link=${secret}`, expiresAt };
}

/** Rejects with RelayError INVALID_PROVIDER. */
export function requireProvider({ catalog }: Pick<AuthorizationOptions, "catalog">, name: string): Provider {
  const provider = catalog.find(name);
  if (provider !== undefined) return provider;
  throw new RelayError("INVALID_PROVIDER", "There is no provider of this name. Check the provider's name.");
}

function originParametersFrom({ originParameters }: ConnectLinkInput, provider: Provider | undefined) {
  if (originParameters.size === 0 || provider === undefined) return {};
  const parsed = parseOriginAnswers(originParameters, provider);
  if ("values" in parsed) return parsed.values;
  throw new RelayError("CALL_FORMAT_ERROR", `origin_parameters.${parsed.parameter} ${parsed.problem}.`);
}
