import { RelayError } from "../model/errors.js";

/** How connecting ended, as the application's page hears it. */
export type ConnectOutcome =
  | { readonly outcome: "success" }
  /** `error` is a code of RFC 6749 sections 4.1.2.1 and 5.2, or one of ours in the same spelling. */
  | { readonly outcome: "error"; readonly error: string };

/** Throws RelayError CALLER_NOT_ALLOWED when the address is not one of the application's, compared as text (RFC 9700 section 4.1.3). */
export function requireRedirectUri(redirectUri: string | undefined, allowed: readonly string[]): void {
  if (redirectUri === undefined || allowed.includes(redirectUri)) return;
  throw new RelayError(
    "CALLER_NOT_ALLOWED",
    "This redirect_uri is not on the application's list. Use a listed one, or have it added with 'relay app update --allow-redirect'.",
  );
}

/** The address to send the browser back to; what it has already in its query stays. Pure. */
export function redirectUriWith(redirectUri: string, provider: string, outcome: ConnectOutcome): string {
  const added = new URLSearchParams({ provider, ...outcome }).toString();
  return redirectUri + (redirectUri.includes("?") ? "&" : "?") + added;
}
