import type { RenewalTarget } from "../tokens/renewal.js";
import type { TokenEndpointAnswer } from "../tokens/token-answer.js";
import type { TokenRequest } from "../tokens/token-request.js";
import type { Upstream } from "../upstream/request.js";
import { headerValue } from "./answer.js";

/** Below the lease of a renewal and below the grace that providers give a rotated token (threats 3.1). Milliseconds. */
const TOKEN_DEADLINE_MS = 8000;

/**
 * Asks a token endpoint, through the same guarded way out as every call. Not tied to any caller: a renewal that has
 * begun is finished.
 */
export function createTokenEndpoint(upstream: Upstream) {
  return async (target: RenewalTarget, { headers, body }: TokenRequest): Promise<TokenEndpointAnswer> => {
    const url = new URL(target.tokenEndpoint);
    const answer = await upstream.send(
      {
        origin: url.origin,
        path: url.pathname + url.search,
        method: "POST",
        headers,
        body,
        connectionId: "token-endpoint",
        allowPrivateNetwork: target.allowPrivateNetwork,
      },
      { deadline: performance.now() + TOKEN_DEADLINE_MS, signal: undefined },
    );
    const { statusCode, rawHeaders } = answer;
    return { statusCode, body: answer.body, retryAfter: headerValue(rawHeaders, "retry-after") };
  };
}
