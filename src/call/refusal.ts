import { isExpirySignal } from "../providers/expiry-signal.js";
import type { Provider } from "../providers/provider.js";
import { headerValue } from "../upstream/fields.js";
import type { UpstreamAnswer } from "../upstream/request.js";

/** A page of a proxy on the way is no word of the provider about a token that is younger than this. Milliseconds. */
const MIN_AGE_MS = 30_000;

/** How an answer refuses the access token: it says that it is the token, or it is likely. */
export type TokenRefusal = "named" | "likely";

/**
 * Whether an answer means that the access token has ended (threats 3.6): 401, unless it says that only the scope is
 * too small (RFC 6750 section 3.1), or what the provider's definition names.
 *
 * @param tokenAgeMs since when the token is stored.
 */
export function tokenRefusalOf(
  provider: Provider,
  answer: UpstreamAnswer,
  tokenAgeMs: number,
): TokenRefusal | undefined {
  if (isExpirySignal(provider, answer.statusCode, answer.body)) return "named";
  if (answer.statusCode !== 401) return undefined;
  const challenge = headerValue(answer.rawHeaders, "www-authenticate");
  if (/error="?invalid_token/i.test(challenge)) return "named";
  if (challenge !== "") return /error="?insufficient_scope/i.test(challenge) ? undefined : "likely";
  const isPage = headerValue(answer.rawHeaders, "content-type").startsWith("text/html");
  return tokenAgeMs >= MIN_AGE_MS || !isPage ? "likely" : undefined;
}
