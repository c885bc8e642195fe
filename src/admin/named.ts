import { Code, ConnectError } from "@connectrpc/connect";
import type { Application, ApplicationStore } from "../applications/application.js";
import { MAX_ID_LENGTH } from "../applications/caller-ids.js";
import type { Provider, ProviderCatalog } from "../providers/provider.js";
import { isProviderName, PROVIDER_NAME_HINT } from "../providers/provider-name.js";
import { invalidArgument, required } from "./invalid-argument.js";

/** What a request says that there is none of. */
export function notFound(what: string): ConnectError {
  return new ConnectError(`There is no ${what}.`, Code.NotFound);
}

/** Reads an id or key that must be there: 1 to 256 characters. */
export function requiredId(value: string, field: string): string {
  if (value.length > MAX_ID_LENGTH) throw invalidArgument(field, `is longer than ${MAX_ID_LENGTH} characters`);
  return required(value, field);
}

/** The application that a request names. @param field where the request names it. */
export async function namedApplication(
  applications: Pick<ApplicationStore, "findByPublicKey">,
  publicKey: string,
  field = "public_key",
): Promise<Application> {
  const application = await applications.findByPublicKey(requiredId(publicKey, field));
  if (application === undefined) throw noApplication();
  return application;
}

export function noApplication(): ConnectError {
  return notFound("application with this public key");
}

/** The provider that a request names, by name or alias. */
export function namedProvider(catalog: ProviderCatalog, name: string, field = "provider_name"): Provider {
  const provider = catalog.find(required(name, field));
  if (provider === undefined) throw notFound("provider of this name");
  return provider;
}

/**
 * The name of the provider that a request names. One that is no longer in the catalogue is taken as written, so that what
 * is stored for it can still be seen and deleted.
 */
export function providerNameFrom(catalog: ProviderCatalog, name: string, field = "provider_name"): string {
  const provider = catalog.find(name);
  if (provider !== undefined) return provider.name;
  if (isProviderName(required(name, field))) return name;
  throw invalidArgument(field, PROVIDER_NAME_HINT);
}
