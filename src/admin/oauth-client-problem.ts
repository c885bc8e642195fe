import type { Provider } from "../providers/provider.js";

/**
 * Why an application can have no OAuth client at a provider, as what follows the provider's name in a sentence; undefined
 * when it can. Without a token endpoint nobody is connected in a browser and no token renewed, so that no client is ever
 * used. Pure.
 */
export function oauthClientProblem({ oauth2 }: Provider): string | undefined {
  if (oauth2?.tokenEndpoint !== undefined) return undefined;
  return (
    "has no oauth2.tokenEndpoint in its definition, so that a client would be of no use: store users' tokens with " +
    "'relay connection put', or add oauth2 to a definition of your own (RELAY_PROVIDERS)"
  );
}
