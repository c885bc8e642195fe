import type { Answer } from "./answer.js";
import { answerAuthorize } from "./authorize.js";
import { answerFromOAuthError, OAuthError } from "./oauth-error.js";
import type { OAuthServer } from "./oauth-server.js";
import { answerRevoke } from "./revoke.js";
import type { Route, RoutedRequest } from "./router.js";
import { answerToken } from "./token.js";

/** The route table of the authorization server: what works without an access token. */
export function createOAuthRoutes(server: OAuthServer): readonly Route<RoutedRequest>[] {
  return [
    { path: "/oauth/authorize", methods: ["GET"], handle: (request) => answerAuthorize(request, server) },
    { path: "/oauth/token", methods: ["POST"], handle: (request) => answerTokenHeld(request, server) },
    { path: "/oauth/revoke", methods: ["POST"], handle: (request) => answerOrError(answerRevoke, request, server) },
  ];
}

/** A token answer, at once or when the one who holds it lets it go. */
function answerTokenHeld(request: RoutedRequest, server: OAuthServer): Answer | Promise<Answer> {
  const answer = answerOrError(answerToken, request, server);
  return server.holdTokenAnswer?.(request.received, answer).then(() => answer) ?? answer;
}

function answerOrError(
  endpoint: (request: RoutedRequest, server: OAuthServer) => Answer,
  request: RoutedRequest,
  server: OAuthServer,
): Answer {
  try {
    return endpoint(request, server);
  } catch (error) {
    if (error instanceof OAuthError) return answerFromOAuthError(error);
    throw error;
  }
}
