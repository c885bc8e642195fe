import type { OAuthClientKey } from "../admin/put-oauth-client.js";
import type { Provider } from "../providers/provider.js";
import { noApplication } from "./application-text.js";
import { loadCatalog, noProvider } from "./environment.js";
import type { OpenStore } from "./open-store.js";

/** Which client a command is about. */
export interface ClientOptions {
  readonly app: string;
  readonly provider: string;
  readonly json?: boolean;
}

/** Finds application and provider by what the command names. */
export async function clientKeyFrom(
  { store, config }: OpenStore,
  { app, provider: name }: ClientOptions,
): Promise<OAuthClientKey & { readonly provider: Provider }> {
  const provider = (await loadCatalog(config)).find(name);
  if (provider === undefined) {
    throw noProvider();
  }
  const application = await store.applications.findByPublicKey(app);
  if (application === undefined) throw noApplication();
  return { provider, application, providerName: provider.name };
}
