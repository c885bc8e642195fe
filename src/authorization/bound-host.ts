import type { OAuth2 } from "../providers/provider.js";
import type { StoredOAuthClient } from "../tokens/oauth-client.js";

/** An endpoint whose whole host is a parameter: whoever chooses it would be sent the client's secret. */
const WHOLE_HOST = /^https:\/\/\{([^}]*)\}(?:[:/?]|$)/;

/**
 * The parameter that is the whole host of an endpoint and that the operator has not fixed for this client; undefined
 * when there is none, and the client's secret may be sent. A parameter in front of the provider's own domain is fine:
 * who has the domain has what is below it. Pure.
 */
export function freeHostParameter(
  oauth2: Pick<OAuth2, "authorizationEndpoint" | "tokenEndpoint" | "refreshEndpoint" | "revocationEndpoint">,
  { originParameters }: Pick<StoredOAuthClient, "originParameters">,
): string | undefined {
  const { authorizationEndpoint, tokenEndpoint, refreshEndpoint, revocationEndpoint } = oauth2;
  return [authorizationEndpoint, tokenEndpoint, refreshEndpoint, revocationEndpoint]
    .flatMap((endpoint = "") => WHOLE_HOST.exec(endpoint)?.[1] ?? [])
    .find((parameter) => !Object.hasOwn(originParameters, parameter));
}
