import type { OAuthClientJson } from "../../gen/relay/admin/v1/oauth_client_pb.js";
import type { Api } from "./api.js";

/** Names of the providers at which applications have OAuth clients, as far as they were asked for. */
export interface ApplicationProviders {
  /** Asks for those of each application, some at a time. Never rejects. */
  load(publicKeys: readonly string[]): Promise<void>;
  /** Of one application, in words. */
  readonly of: (publicKey: string) => string;
}

/** More than are shown of one application. */
const MAX_PROVIDERS = 20;

/** @param onChange hears of each answer. */
export function createApplicationProviders(api: Api, onChange: () => void): ApplicationProviders {
  const known = new Map<string, string>();

  async function ask(publicKey: string): Promise<string> {
    const request = { publicKey, pageSize: MAX_PROVIDERS };
    const { oauthClients = [], nextPageToken } = await api.call("OAuthClientService/ListOAuthClients", request);
    const names = oauthClients.map(nameOf).join(", ");
    return names === "" ? "none" : `${names}${nextPageToken ? ", and others" : ""}`;
  }

  return {
    async load(publicKeys) {
      for (const publicKey of publicKeys) {
        known.set(publicKey, await ask(publicKey).catch(() => "not known"));
        onChange();
      }
    },
    of: (publicKey) => known.get(publicKey) ?? "…",
  };
}

function nameOf({ providerName = "", refusedTime }: OAuthClientJson): string {
  return refusedTime === undefined ? providerName : `${providerName} (refuses the client since ${refusedTime})`;
}
