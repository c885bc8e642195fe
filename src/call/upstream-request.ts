import type { Connection } from "../oauth/connection.js";
import { placeCredential } from "../providers/credential.js";
import { fillPlaceholders, type PlaceholderTokens } from "../providers/origin.js";
import type { HeaderPairs } from "../providers/provider.js";
import type { UpstreamRequest } from "../upstream/request.js";
import type { AllowedCall } from "./allowed-call.js";
import { appendQuery } from "./query.js";
import { withTraceFields } from "./trace-fields.js";

/**
 * Sent unless the call or the provider's definition says otherwise. Answers are asked for as they are: undoing a
 * compression costs more than it saves on the short way to a relay, and what a provider compresses all the same is
 * decoded under the limit.
 */
const DEFAULT_HEADERS: HeaderPairs = [
  ["accept", "*/*"],
  ["accept-encoding", "identity"],
  ["user-agent", "provider-call-relay"],
];

/** The request of an allowed call, with the tokens in their places. Pure. */
export function upstreamRequestFrom(
  allowed: AllowedCall,
  connection: Pick<Connection, "id" | "applicationId">,
  tokens: PlaceholderTokens,
): UpstreamRequest {
  const { provider, checked, egress } = allowed;
  const target = fillPlaceholders(egress.path, provider, tokens);
  const { path, headers } = placeCredential({
    provider,
    headers: checked.headers,
    defaults: withTraceFields(DEFAULT_HEADERS, allowed),
    path: appendQuery(target, checked.query),
    token: tokens.access_token,
  });
  return {
    origin: egress.origin,
    path,
    method: checked.method,
    headers,
    body: checked.body,
    applicationId: connection.applicationId,
    connectionId: connection.id,
    allowPrivateNetwork: provider.allowPrivateNetwork,
  };
}
