import { RelayError } from "../errors.js";
import { fillEndpoint } from "../providers/endpoint.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { openOAuthClient } from "../tokens/client-secret.js";
import type { Connection } from "../tokens/connection.js";
import type { OAuthClientStore } from "../tokens/oauth-client.js";
import type { RenewalTarget } from "../tokens/renewal.js";
import type { Sealer } from "../tokens/seal.js";

/** Where the way to a token endpoint is put together from. */
export interface RenewalTargetOptions {
  readonly catalog: ProviderCatalog;
  readonly oauthClients: Pick<OAuthClientStore, "find">;
  readonly sealer: Sealer;
}

/**
 * Finds where and as whom a connection is renewed: the provider's definition and the application's OAuth client there.
 * Rejects with REFRESH_UNAVAILABLE when the operator has stored no client or the definition names no token endpoint.
 */
export function createTargetFor({ catalog, oauthClients, sealer }: RenewalTargetOptions) {
  return async (connection: Connection): Promise<RenewalTarget> => {
    const provider = catalog.find(connection.providerName);
    const oauth2 = provider?.oauth2;
    const template = oauth2?.refreshEndpoint ?? oauth2?.tokenEndpoint;
    const endpoint = template && fillEndpoint(template, connection.originParameters);
    const stored = await oauthClients.find(connection.applicationId, connection.providerName);
    if (provider === undefined || oauth2 === undefined || !endpoint || stored === undefined) {
      throw new RelayError(
        "REFRESH_UNAVAILABLE",
        "This user's access token has ended, and no OAuth client is stored to renew it. The operator must add it with 'relay client put'.",
      );
    }
    return {
      tokenEndpoint: endpoint,
      connectionId: connection.id,
      client: openOAuthClient(sealer, stored),
      clientAuthentication: oauth2.clientAuthentication,
      clientIdParameter: oauth2.clientIdParameter,
      tokenRequestFormat: oauth2.tokenRequestFormat,
      tokenParameters: oauth2.tokenParameters,
      refreshParameters: oauth2.refreshParameters,
      tokenResponseMember: oauth2.tokenResponseMember,
      defaultExpiresInS: oauth2.defaultExpiresIn,
      allowPrivateNetwork: provider.allowPrivateNetwork,
    };
  };
}
