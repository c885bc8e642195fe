import type { OAuth2 } from "../providers/provider.js";

/** What one authorization request says (RFC 6749 section 4.1.1). */
export interface AuthorizationRequest {
  /** The authorization endpoint, with the parameters of its host filled in. */
  readonly endpoint: string;
  readonly clientId: string;
  /** Where the provider sends the browser back to: the relay's callback. */
  readonly redirectUri: string;
  /** As the provider writes it; empty: the parameter is left out. */
  readonly scope: string;
  readonly state: string;
  /** S256 challenge (RFC 7636 section 4.3); undefined without PKCE. */
  readonly codeChallenge: string | undefined;
}

/** Builds the address that the browser is sent to; parameters that the endpoint has already stay. Pure. */
export function authorizationUrlFrom(
  request: AuthorizationRequest,
  habits: Pick<OAuth2, "clientIdParameter" | "authorizationParameters">,
): string {
  const url = new URL(request.endpoint);
  const set = (name: string, value: string) => url.searchParams.set(name, value);
  set("response_type", "code");
  set(habits.clientIdParameter, request.clientId);
  set("redirect_uri", request.redirectUri);
  if (request.scope !== "") set("scope", request.scope);
  set("state", request.state);
  if (request.codeChallenge !== undefined) {
    set("code_challenge", request.codeChallenge);
    set("code_challenge_method", "S256");
  }
  for (const [name, value] of Object.entries(habits.authorizationParameters)) set(name, value);
  return url.href;
}
