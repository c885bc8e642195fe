import type { Answer } from "./answer.js";
import { jsonAnswer } from "./answer.js";
import { authenticateClient } from "./client-authentication.js";
import type { Parameters } from "./form.js";
import { parseForm, requiredParameter } from "./form.js";
import type { TokenResponse } from "./grants.js";
import { NO_STORE, OAuthError } from "./oauth-error.js";
import type { OAuthServer } from "./oauth-server.js";
import type { RoutedRequest } from "./router.js";

/** Token endpoint (RFC 6749 section 3.2). Throws {@link OAuthError}. */
export function answerToken({ received }: RoutedRequest, server: OAuthServer): Answer {
  const parameters = parseForm(received);
  const { client_id } = authenticateClient(received.rawHeaders, parameters, server.clients);
  return jsonAnswer(JSON.stringify(grantTokens(parameters, client_id, server)), 200, NO_STORE);
}

function grantTokens(parameters: Parameters, client_id: string, { grants, codes }: OAuthServer): TokenResponse {
  switch (requiredParameter(parameters, "grant_type")) {
    case "authorization_code": {
      const code = requiredParameter(parameters, "code");
      const redirect_uri = parameters.get("redirect_uri");
      const code_verifier = parameters.get("code_verifier");
      return grants.issue(codes.redeem({ code, client_id, redirect_uri, code_verifier }));
    }
    case "refresh_token":
      return grants.refresh(requiredParameter(parameters, "refresh_token"), client_id, parameters.get("scope"));
    default:
      throw new OAuthError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token.");
  }
}
