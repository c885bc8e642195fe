import { randomUUID } from "node:crypto";
import { AuthorizationResponseError, validateAuthResponse } from "oauth4webapi";
import { requireApplication } from "../applications/caller.js";
import { onlyValue, parseUrl } from "../lib/parse-url.js";
import { formatError, RelayError } from "../model/errors.js";
import { missingFrom, withDefaults } from "../providers/connection-value.js";
import { fillEndpoint } from "../providers/endpoint.js";
import { endpointsOf, type Provider } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import {
  type AuthorizationOptions,
  type AuthorizationServer,
  findAuthorizationServer,
  findClient,
} from "./authorization-server.js";
import type { ServedConnection } from "./connection.js";
import { withAnswer, withLookups } from "./connection-values.js";
import { openOAuthClient } from "./oauth-client.js";
import { type Failed, redeemVerifier } from "./signed-flow.js";
import { newConnectionFrom, persistFor, storeConnection } from "./store-answer.js";
import type { OpenTicket, StatePayload } from "./tickets.js";
import { decideTokenAnswer, type TokenEndpointAnswer, type TokenVerdict } from "./token-answer.js";
import { revoke, type TokenEndpoint } from "./token-endpoint.js";
import { type CodeGrant, codeRequestFrom, type OAuthClient } from "./token-request.js";
import type { TokenResponse, ToldMembers } from "./token-response.js";

/** How one attempt to connect ended, and where the browser goes from here. */
export interface CallbackResult {
  readonly provider: Provider;
  readonly outcome: ConnectOutcome;
  readonly redirectUri: string | undefined;
  readonly openerOrigin: string | undefined;
  readonly session: string | undefined;
}

/** Codes of RFC 6749 section 4.1.2.1 and of OpenID Connect Core section 3.1.2.6 are of this form. */
const ERROR_CODE = /^[a-z][a-z_]{0,63}$/;

/** The error codes that the application's page receives, by the verdict on the code's redemption. */
const ERRORS: Readonly<Record<Exclude<TokenVerdict["kind"], "granted">, string>> = {
  ended: "invalid_grant",
  misconfigured: "invalid_client",
  refused: "server_error",
  failed: "temporarily_unavailable",
};

/**
 * Ends the authorization code flow: judges the authorization response (RFC 6749 section 4.1.2), redeems the code once
 * and stores the connection. A redemption that has begun is finished even when the browser disconnects.
 *
 * Rejects with RelayError CALL_FORMAT_ERROR when the response belongs to no attempt of this browser or another
 * application has the public key now, INVALID_PUBLIC_KEY when the application has been removed or disabled,
 * INVALID_PROVIDER when the provider has been removed, STORE_UNAVAILABLE.
 */
export async function finishAuthorization(
  options: AuthorizationOptions,
  parameters: URLSearchParams,
  browser: string,
): Promise<CallbackResult> {
  const state = onlyValue(parameters, "state");
  const ticket = await options.tickets.take("STATE", state, browser);
  if (ticket === undefined)
    throw formatError(
      "This connection attempt was not started in this browser, has already finished, or took too long. Start again.",
    );
  const { publicKey, providerName, redirectUri, openerOrigin, session } = ticket.payload;
  const application = await requireApplication(options, { publicKey });
  if (application.id !== ticket.applicationId)
    throw formatError("The application of this connection attempt no longer exists.");
  const provider = options.catalog.find(providerName);
  if (provider === undefined) throw removedProvider(providerName);
  const outcome = await options.pending.track(connect(options, ticket, provider, parameters));
  const told = outcome.outcome === "success" ? outcome.outcome : outcome.error;
  options.onEvent({ what: "connect", applicationId: application.id, provider: provider.name, outcome: told });
  return {
    ...{ provider, outcome, session },
    // The addresses may have been taken off the application's lists since the attempt began.
    redirectUri: listed(redirectUri, application.allowedRedirectUris),
    openerOrigin: listed(openerOrigin, application.allowedOrigins),
  };
}

function listed(value: string | undefined, list: readonly string[]): string | undefined {
  return value !== undefined && list.includes(value) ? value : undefined;
}

async function connect(
  options: AuthorizationOptions,
  ticket: OpenTicket<"STATE">,
  provider: Provider,
  parameters: URLSearchParams,
): Promise<ConnectOutcome> {
  const { applicationId, userId, payload } = ticket;
  const { originParameters: asked, temporary } = payload;
  const error = temporary ? signedErrorFrom(temporary, parameters) : errorFrom(provider, payload, parameters);
  if (error !== undefined) return { outcome: "error", error };
  const id = randomUUID();
  const key = { applicationId, userId, providerName: provider.name };
  const returned = withAnswer(provider, asked, asked, "callback", (name) => onlyValue(parameters, name));
  const served = { id, ...key, originParameters: returned };
  const obtainedAt = options.now();
  const redeemed = temporary
    ? await redeemSigned(options, provider, served, temporary, parameters)
    : await redeemCode(options, served, payload, parameters);
  if ("error" in redeemed) return { outcome: "error", error: redeemed.error };
  const { tokens, told, server, client } = redeemed;
  const revokeTokens = () => redeemed.revoke().catch((error) => options.onFault("revocation", error));
  const granted = withAnswer(provider, returned, returned, "token", told);
  const lookedUp = await withLookups({ ...options, provider, server, client, ...tokens }, granted);
  const originParameters = withDefaults(lookedUp, provider);
  if (missingFrom(originParameters, provider).length > 0) {
    // Without these values nobody could use the tokens.
    await revokeTokens();
    return { outcome: "error", error: "invalid_response" };
  }
  const { defaultExpiresInS } = redeemed;
  const input = { id, key, response: tokens, defaultExpiresInS, originParameters, obtainedAt };
  const connection = newConnectionFrom(options.sealer, input);
  const persistence = persistFor(STORE_FOR_MS, (error) => options.onFault("callback", error));
  const stored = await storeConnection({ ...options, persistence, revoke: revokeTokens }, connection);
  return stored === "stored" ? { outcome: "success" } : { outcome: "error", error: ERRORS.failed };
}

/** The result of a redemption, and what is needed to use or revoke it before it is stored. */
interface Redeemed {
  readonly tokens: TokenResponse;
  readonly told: ToldMembers;
  readonly server: TokenEndpoint;
  /** Signs requests; undefined when requests are not signed. */
  readonly client: OAuthClient | undefined;
  readonly defaultExpiresInS: number | undefined;
  readonly revoke: () => Promise<unknown>;
}

/** RFC 6749 section 4.1.3. */
async function redeemCode(
  options: AuthorizationOptions,
  connection: ServedConnection,
  { codeVerifier }: StatePayload,
  parameters: URLSearchParams,
): Promise<Redeemed | Failed> {
  const server = await findAuthorizationServer(options, connection, onlyValue(parameters, "state"));
  if (server instanceof RelayError)
    return { error: server.reason === "REFRESH_UNAVAILABLE" ? ERRORS.misconfigured : "invalid_response" };
  const verdict = await redeem(options, server, {
    code: new Secret(onlyValue(parameters, "code")),
    redirectUri: callbackUrl(options.publicUrl()),
    codeVerifier: codeVerifier === undefined ? undefined : new Secret(codeVerifier),
  });
  if (verdict.kind !== "granted") return { error: ERRORS[verdict.kind] };
  const { tokens, told } = verdict;
  const revokeTokens = () => revoke(options.send, server, tokens);
  const { defaultExpiresInS } = server;
  return { tokens, told, server, client: undefined, defaultExpiresInS, revoke: revokeTokens };
}

/** RFC 5849 section 2.3. */
async function redeemSigned(
  options: AuthorizationOptions,
  provider: Provider,
  connection: ServedConnection,
  temporary: NonNullable<StatePayload["temporary"]>,
  parameters: URLSearchParams,
): Promise<Redeemed | Failed> {
  const registration = (await findClient(options, provider, connection))?.stored;
  if (registration === undefined) return { error: ERRORS.misconfigured };
  const { id: connectionId, originParameters: values } = connection;
  const flow = { options, provider, client: registration, values, connectionId };
  const granted = await redeemVerifier(flow, temporary, onlyValue(parameters, "oauth_verifier"));
  if ("error" in granted) return granted;
  const { allowPrivateNetwork } = provider;
  return {
    ...granted,
    server: { tokenEndpoint: "", registration, connectionId, allowPrivateNetwork },
    client: openOAuthClient(options.sealer, registration),
    defaultExpiresInS: undefined,
    // OAuth 1.0a has no standard way to revoke a token.
    revoke: async () => {},
  };
}

/**
 * How long storing the tokens is retried, in milliseconds: longer than a database takes to restart, since they exist
 * nowhere else.
 */
const STORE_FOR_MS = 120_000;

/**
 * Redeems the code, once: using a code twice may revoke the tokens it gave (RFC 6749 section 4.1.2). No answer counts
 * as a failure.
 */
async function redeem(options: AuthorizationOptions, server: AuthorizationServer, grant: CodeGrant) {
  let answer: TokenEndpointAnswer;
  try {
    answer = await options.send(server, codeRequestFrom(server.client, grant, server));
  } catch {
    return { kind: "failed" } as const;
  }
  return decideTokenAnswer(answer, options.now(), server);
}

/**
 * The error with which the provider or the user refused; undefined when there is a verifier (RFC 5849 section 2.2). A
 * callback that names another token belongs to another attempt.
 */
function signedErrorFrom({ token }: { readonly token: string }, parameters: URLSearchParams): string | undefined {
  // X sends `denied` when the user refuses.
  if (parameters.has("denied")) return "access_denied";
  if (parameters.has("oauth_token") && onlyValue(parameters, "oauth_token") !== token) return "invalid_response";
  const verifiers = parameters.getAll("oauth_verifier");
  if (verifiers.length > 1) return "invalid_response";
  if (!verifiers[0]) return "access_denied";
  return parameters.has("oauth_token") ? undefined : "invalid_response";
}

/** The error with which the provider or the user refused; undefined when there is a code. */
function errorFrom(
  provider: Provider,
  { originParameters }: StatePayload,
  parameters: URLSearchParams,
): string | undefined {
  const { oauth2 } = provider;
  const server = {
    issuer: issuerFrom(provider, originParameters, parameters.get("iss")),
    authorization_response_iss_parameter_supported: oauth2?.authorizationResponseIssParameterSupported ?? false,
  };
  try {
    validateAuthResponse(server, { client_id: "any" }, parameters, parameters.get("state") ?? "");
  } catch (error) {
    if (!(error instanceof AuthorizationResponseError)) return "invalid_response";
    return ERROR_CODE.test(error.error) ? error.error : "server_error";
  }
  return onlyValue(parameters, "code") === "" ? "invalid_response" : undefined;
}

/**
 * The value that `iss` of a response must have (RFC 9207 section 2.4). Some providers send `iss` without announcing it
 * in their metadata (Google does), so a definition without an issuer accepts an `iss` at the origin of one of its
 * endpoints. The `iss` of another server is a sign of a mix-up attack.
 */
function issuerFrom(
  { oauth2, connectionValues }: Provider,
  originParameters: StatePayload["originParameters"],
  iss: string | null,
): string {
  const fill = (endpoint: string | undefined) => endpoint && fillEndpoint(endpoint, originParameters, connectionValues);
  const known = fill(oauth2?.issuer);
  if (known !== undefined || iss === null) return known ?? "unknown";
  const named = parseUrl(iss)?.origin;
  const isOwn = endpointsOf({ oauth2 }).some((endpoint) => {
    const filled = fill(endpoint);
    return filled !== undefined && parseUrl(filled)?.origin === named;
  });
  return isOwn ? iss : `not ${iss}`;
}

/** Also when another relay of the same store started the attempt, and this one has other definitions. */
function removedProvider(name: string): RelayError {
  return new RelayError(
    "INVALID_PROVIDER",
    `This relay has no definition for ${name}. The operator must add it in RELAY_PROVIDERS.`,
  );
}

/** Path of the redirection endpoint (RFC 6749 section 3.1.2), the same for every provider. */
export const CALLBACK_PATH = "/oauth/callback";

/**
 * The redirection endpoint as it is registered at providers. Throws RelayError PROVIDER_MISCONFIGURED when the relay
 * has no public URL.
 */
export function callbackUrl(publicUrl: string | undefined): string {
  return requirePublicUrl(publicUrl) + CALLBACK_PATH;
}

/** Throws RelayError PROVIDER_MISCONFIGURED when there is none. */
export function requirePublicUrl(publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl;
  throw new RelayError(
    "PROVIDER_MISCONFIGURED",
    "The relay does not know the address at which browsers reach it. The operator must set RELAY_PUBLIC_URL.",
  );
}

/** How connecting ended, as reported to the application's page. */
export type ConnectOutcome =
  | { readonly outcome: "success" }
  /** `error` is a code of RFC 6749 sections 4.1.2.1 and 5.2, or one of ours in the same spelling. */
  | { readonly outcome: "error"; readonly error: string };

/** Throws RelayError CALLER_NOT_ALLOWED when the address is not one of the application's, compared as text (RFC 9700 section 4.1.3). */
export function requireRedirectUri(redirectUri: string | undefined, allowed: readonly string[]): void {
  if (redirectUri === undefined || allowed.includes(redirectUri)) return;
  throw new RelayError(
    "CALLER_NOT_ALLOWED",
    "This redirect_uri is not on the application's list. Use a listed one, or have it added with 'relay app update --allow-redirect'.",
  );
}

/**
 * Throws RelayError CALLER_NOT_ALLOWED when pages of this origin may not receive the result. Exact comparison (RFC
 * 6454).
 */
export function requireOpenerOrigin(openerOrigin: string | undefined, allowed: readonly string[]): void {
  if (openerOrigin === undefined || allowed.includes(openerOrigin)) return;
  throw new RelayError(
    "CALLER_NOT_ALLOWED",
    "The origin of the page that opened this window is not on the application's list. Have it added with 'relay app update --allow-origin'.",
  );
}

/** Builds the address to send the browser back to: adds the result to the query that it already has. Pure. */
export function redirectUriWith(redirectUri: string, provider: string, outcome: ConnectOutcome): string {
  const added = new URLSearchParams({ provider, ...outcome }).toString();
  return redirectUri + (redirectUri.includes("?") ? "&" : "?") + added;
}
