import type { Application } from "../applications/application.js";
import type { ConnectionKey } from "../tokens/connection.js";
import { noApplication } from "./application-text.js";
import { loadCatalog } from "./environment.js";
import { failure } from "./exit-error.js";
import type { OpenStore } from "./open-store.js";

/** Options that name one connection. */
export interface ConnectionOptions {
  readonly app: string;
  readonly user: string;
  readonly provider: string;
  readonly json?: boolean;
}

/**
 * Finds what the options name. A provider that is no longer in the catalogue is taken as written, so that its
 * connections can still be seen and deleted.
 */
export async function connectionKeyFrom(
  open: OpenStore,
  options: ConnectionOptions,
): Promise<ConnectionKey & { readonly application: Application }> {
  const application = await open.store.applications.findByPublicKey(options.app);
  if (application === undefined) throw noApplication();
  const provider = (await loadCatalog(open.config)).find(options.provider);
  const providerName = provider?.name ?? options.provider;
  return { application, applicationId: application.id, userId: options.user, providerName };
}

/** What a command says when there is none. */
export function noConnection(): Error {
  return failure("This user has no connection at this provider. 'relay connection list' shows those there are.");
}
