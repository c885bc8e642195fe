import { parseUrl } from "../lib/parse-url.js";
import { createAccount } from "./account.js";
import type { Answer } from "./answer.js";
import { emptyAnswer, errorAnswer } from "./answer.js";
import type { Parameters } from "./form.js";
import { parseParameters } from "./form.js";
import type { OAuthServer } from "./oauth-server.js";
import type { RoutedRequest } from "./router.js";

/** Scope of a request that names none. */
export const DEFAULT_SCOPE = "profile";

/** Authorization endpoint (RFC 6749 section 4.1.1); the resource owner always approves. */
export function answerAuthorize({ query }: RoutedRequest, { clients, codes }: OAuthServer): Answer {
  const parameters = parseParameters(query);
  if (parameters === undefined) return refusal("A parameter is repeated.");
  const client_id = parameters.get("client_id");
  if (client_id === undefined || !clients.some((client) => client.client_id === client_id)) {
    return refusal("client_id is missing or unknown.");
  }
  const redirect_uri = parameters.get("redirect_uri");
  if (redirect_uri === undefined || !isRedirectUri(redirect_uri)) {
    return refusal("redirect_uri must be an absolute http or https URI without a fragment.");
  }
  const error = decideError(parameters);
  if (error !== undefined) return redirectTo(redirect_uri, { error, state: parameters.get("state") });
  const scope = parameters.get("scope") ?? DEFAULT_SCOPE;
  const code_challenge = parameters.get("code_challenge");
  const code = codes.create({ account: createAccount(), client_id, redirect_uri, scope, code_challenge });
  return redirectTo(redirect_uri, { code, state: parameters.get("state") });
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1: without a client and a place to go, the browser stays here. */
function refusal(description: string): Answer {
  return errorAnswer(400, "invalid_request", description);
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-3.1.2 */
function isRedirectUri(text: string): boolean {
  return /^https?:\/\//i.test(text) && !text.includes("#") && parseUrl(text) !== undefined;
}

function decideError(parameters: Parameters): string | undefined {
  const response_type = parameters.get("response_type");
  if (response_type === undefined) return "invalid_request";
  if (response_type !== "code") return "unsupported_response_type";
  // https://www.rfc-editor.org/rfc/rfc7636#section-4.3: a missing method means `plain`, which is not offered here.
  const withoutPkce = !parameters.has("code_challenge");
  return withoutPkce || parameters.get("code_challenge_method") === "S256" ? undefined : "invalid_request";
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2: the query that redirect_uri already has is kept. */
function redirectTo(redirect_uri: string, parameters: Readonly<Record<string, string | undefined>>): Answer {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.append(name, value);
  const { href } = new URL(redirect_uri);
  const location = `${href}${href.includes("?") ? "&" : "?"}${query}`;
  return emptyAnswer(302, ["Location", location, "Cache-Control", "no-store"]);
}
