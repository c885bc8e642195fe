import { RelayError } from "../model/errors.js";

/** Path of the redirection endpoint (RFC 6749 section 3.1.2), the same for every provider. */
export const CALLBACK_PATH = "/oauth/callback";

/**
 * The redirection endpoint as it is registered at providers. Throws RelayError PROVIDER_MISCONFIGURED when the relay
 * does not know under which address browsers reach it.
 */
export function callbackUrl(publicUrl: string | undefined): string {
  return requirePublicUrl(publicUrl) + CALLBACK_PATH;
}

/** Throws RelayError PROVIDER_MISCONFIGURED when there is none. */
export function requirePublicUrl(publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl;
  throw new RelayError(
    "PROVIDER_MISCONFIGURED",
    "The relay does not know the address at which browsers reach it. The operator must set RELAY_PUBLIC_URL.",
  );
}
