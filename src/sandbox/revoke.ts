import type { Answer } from "./answer.js";
import { emptyAnswer } from "./answer.js";
import { authenticateClient } from "./client-authentication.js";
import { parseForm, requiredParameter } from "./form.js";
import { NO_STORE, OAuthError } from "./oauth-error.js";
import type { OAuthServer } from "./oauth-server.js";
import type { RoutedRequest } from "./router.js";

/** Revocation endpoint (RFC 7009); a token it does not know is as good as revoked. Throws {@link OAuthError}. */
export function answerRevoke({ received }: RoutedRequest, { clients, grants }: OAuthServer): Answer {
  const parameters = parseForm(received);
  const { client_id } = authenticateClient(received.rawHeaders, parameters, clients);
  const token = requiredParameter(parameters, "token");
  const owner = grants.findClientId(token);
  // https://www.rfc-editor.org/rfc/rfc7009#section-2.1
  if (owner !== undefined && owner !== client_id) {
    throw new OAuthError("invalid_grant", "The token was issued to another client.");
  }
  grants.revoke(token);
  return emptyAnswer(200, NO_STORE);
}
