import type { TokenResponse } from "./token-response.js";

/**
 * When an access token ends, in milliseconds since the epoch; undefined: not known. Counted from `obtainedAt`, the time
 * of the request (threats 3.7). `defaultExpiresInS` is the lifetime in seconds to assume when the response has none.
 */
export function expiresAtFrom(
  { expiresInS }: Pick<TokenResponse, "expiresInS">,
  defaultExpiresInS: number | undefined,
  obtainedAt: number,
): number | undefined {
  const lifeS = expiresInS ?? defaultExpiresInS;
  return lifeS === undefined ? undefined : obtainedAt + lifeS * 1000;
}
