import { parseUrl } from "../lib/parse-url.js";
import {
  type AuthorizationCodes,
  answerFromOAuthError,
  createAccount,
  fieldValues,
  type Grants,
  NO_STORE,
  OAuthError,
  type Parameters,
  parseForm,
  parseParameters,
  requiredParameter,
  type TokenResponse,
} from "./grants.js";
import {
  type Answer,
  emptyAnswer,
  errorAnswer,
  jsonAnswer,
  type Route,
  type RoutedRequest,
  type SandboxRequest,
} from "./router.js";

/** The route table of the authorization server, whose endpoints need no access token. */
export function createOAuthRoutes(server: OAuthServer): readonly Route<RoutedRequest>[] {
  return [
    { path: "/oauth/authorize", methods: ["GET"], handle: (request) => answerAuthorize(request, server) },
    { path: "/oauth/token", methods: ["POST"], handle: (request) => answerTokenHeld(request, server) },
    { path: "/oauth/revoke", methods: ["POST"], handle: (request) => answerOrError(answerRevoke, request, server) },
  ];
}

/** Answers a token request, at once or after `holdTokenAnswer` resolves. */
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

/**
 * Called for each answer of the token endpoint, after the tokens have changed. The answer is sent when this resolves.
 */
export type HoldTokenAnswer = (received: SandboxRequest, answer: Answer) => Promise<void>;

/** State shared by the endpoints of the authorization server. */
export interface OAuthServer {
  readonly clients: readonly Client[];
  readonly grants: Grants;
  readonly codes: AuthorizationCodes;
  readonly holdTokenAnswer?: HoldTokenAnswer | undefined;
}

/** Token endpoint (RFC 6749 section 3.2). Throws {@link OAuthError}. */
function answerToken({ received }: RoutedRequest, server: OAuthServer): Answer {
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

/** Revocation endpoint (RFC 7009); an unknown token counts as revoked. Throws {@link OAuthError}. */
function answerRevoke({ received }: RoutedRequest, { clients, grants }: OAuthServer): Answer {
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

/** Scope of a request that names none. */
export const DEFAULT_SCOPE = "profile";

/** Authorization endpoint (RFC 6749 section 4.1.1); the resource owner always approves. */
function answerAuthorize({ query }: RoutedRequest, { clients, codes }: OAuthServer): Answer {
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

/** https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2.1: without a valid client and redirect_uri, no redirect. */
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

/** https://www.rfc-editor.org/rfc/rfc6749#section-4.1.2: an existing query of redirect_uri is kept. */
function redirectTo(redirect_uri: string, parameters: Readonly<Record<string, string | undefined>>): Answer {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.append(name, value);
  const { href } = new URL(redirect_uri);
  const location = `${href}${href.includes("?") ? "&" : "?"}${query}`;
  return emptyAnswer(302, ["Location", location, "Cache-Control", "no-store"]);
}

/** An OAuth client that the sandbox knows. */
export interface Client {
  readonly client_id: string;
  /** Omitted for a public client (RFC 6749 section 2.1). */
  readonly client_secret?: string;
}

/**
 * Authenticates the client of a token or revocation request: `client_secret_basic`, `client_secret_post`, or `none` for
 * a public client (RFC 6749 section 2.3). Throws {@link OAuthError} `invalid_client` or `invalid_request`.
 */
function authenticateClient(rawHeaders: readonly string[], parameters: Parameters, clients: readonly Client[]): Client {
  const presented = presentedClient(rawHeaders, parameters);
  const client = clients.find(({ client_id }) => client_id === presented.client_id);
  if (client === undefined || client.client_secret !== presented.client_secret) {
    throw new OAuthError("invalid_client", "The client is unknown or its secret is wrong.");
  }
  return client;
}

/** The client credentials in a request. */
interface PresentedClient {
  readonly client_id: string;
  readonly client_secret: string | undefined;
}

function presentedClient(rawHeaders: readonly string[], parameters: Parameters): PresentedClient {
  const values = fieldValues(rawHeaders, "authorization");
  const client_id = parameters.get("client_id");
  const client_secret = parameters.get("client_secret");
  if (values.length === 0) {
    if (client_id === undefined) throw new OAuthError("invalid_client", "The request names no client.");
    return { client_id, client_secret };
  }
  // https://www.rfc-editor.org/rfc/rfc6749#section-2.3: never more than one method in a request.
  if (values.length > 1 || client_secret !== undefined) {
    throw new OAuthError("invalid_request", "The client is authenticated more than once.");
  }
  const basic = parseBasic(values[0] ?? "");
  if (client_id !== undefined && client_id !== basic.client_id) {
    throw new OAuthError("invalid_request", "client_id is not the client in the Authorization field.");
  }
  return basic;
}

/** https://www.rfc-editor.org/rfc/rfc6749#section-2.3.1: both parts are form-urlencoded before base64. */
function parseBasic(value: string): PresentedClient {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(value)?.[1];
  const pair = Buffer.from(encoded ?? "", "base64").toString();
  const colon = pair.indexOf(":");
  if (colon === -1)
    throw new OAuthError("invalid_client", "The Authorization field does not contain Basic credentials.");
  return { client_id: formDecode(pair.slice(0, colon)), client_secret: formDecode(pair.slice(colon + 1)) };
}

function formDecode(text: string): string {
  return new URLSearchParams(`v=${text.replaceAll("&", "%26")}`).get("v") ?? "";
}
