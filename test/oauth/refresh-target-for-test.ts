import type { RefreshTarget } from "../../src/oauth/token-endpoint.js";

/** A token endpoint without any habits, for a public client. */
export function refreshTargetForTest(
  own: Pick<RefreshTarget, "connectionId" | "tokenEndpoint" | "client">,
): RefreshTarget {
  return {
    ...own,
    revocationEndpoint: undefined,
    clientAuthentication: "none",
    clientIdParameter: "client_id",
    rawClientSecretBasic: false,
    tokenRequestFormat: "form",
    tokenParameters: {},
    refreshParameters: {},
    tokenResponseMember: undefined,
    tokenErrorMember: undefined,
    expiresAtMember: undefined,
    refreshEndedErrors: new Set(),
    registration: { id: "c", applicationId: "a", providerName: "p", updatedAt: 1 },
    defaultExpiresInS: undefined,
    allowPrivateNetwork: false,
    valuesAfter: () => ({}),
  };
}
