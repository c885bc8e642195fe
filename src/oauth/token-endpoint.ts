import { RelayError } from "../model/errors.js";
import { boundsOf } from "../providers/endpoint.js";
import { wholeHostOf } from "../providers/origin.js";
import { endpointsOf, type Provider } from "../providers/provider.js";
import type { Secret } from "../sealing/seal.js";
import { headerValue } from "../upstream/exchange.js";
import type { RequestProgress, Upstream, UpstreamRequest } from "../upstream/request.js";
import type { Connection, ConnectionKey } from "./connection.js";
import { isOfClient } from "./credentials.js";
import type { RegisteredClient, StoredOAuthClient } from "./oauth-client.js";
import type { TokenAnswerHabits, TokenEndpointAnswer } from "./token-answer.js";
import {
  type OAuthClient,
  type RefreshHabits,
  revocationRequestFrom,
  type TokenRequest,
  TokenRequestNotSentError,
} from "./token-request.js";
import type { ToldMembers } from "./token-response.js";

/** For redeeming a code or revoking a token, while a browser or an operator waits. Milliseconds. */
const DEFAULT_TIMEOUT_MS = 8000;
/**
 * Largest answer of an authorization server, in bytes (threats 3.5), whatever the limit for answers to calls: one that
 * cannot be read may hold a rotated refresh token.
 */
export const MAX_TOKEN_ANSWER_BYTES = 1024 * 1024;
/** After a suspend the answer may be waiting in the socket, but timers run before sockets are read. Milliseconds. */
const LAST_READ_MS = 250;

/** Where and how the token of one connection is refreshed. */
export interface RefreshTarget extends RefreshHabits, TokenAnswerHabits {
  /** Where refresh requests go; the endpoint that the breaker counts. */
  readonly tokenEndpoint: string;
  /** RFC 7009; undefined: tokens cannot be revoked. */
  readonly revocationEndpoint: string | undefined;
  /** Which connection's tokens these are: sockets are kept separate per connection if the operator wants that. */
  readonly connectionId: string;
  readonly client: OAuthClient;
  /** Which client that is in the store. */
  readonly registration: RegisteredClient;
  /** Seconds to assume when the answer has no expires_in; undefined: unknown. */
  readonly defaultExpiresInS: number | undefined;
  readonly allowPrivateNetwork: boolean;
  /** Set if the relay exchanges secret values of the connection for its tokens; undefined: it has a refresh token. */
  readonly grant?:
    | {
        /**
         * Requests a token and resolves to the token endpoint's answer. If the provider accepts what the relay signs as
         * an access token, builds the answer itself. `now` is milliseconds since the epoch.
         */
        readonly ask: (
          send: (request: TokenRequest) => Promise<TokenEndpointAnswer>,
          now: number,
        ) => Promise<TokenEndpointAnswer>;
        /** Whether the client is the connection's own: then its refusal says nothing about others. */
        readonly isOwnClient: boolean;
        /** Whether every secret that the definition requires is there and fits; an older connection may lack some. */
        readonly isWhole: boolean;
      }
    | undefined;
  /** The values to store with the connection after a token response. */
  readonly valuesAfter: (told: ToldMembers) => Connection["originParameters"];
}

/** The part of a connection's authorization server that one request needs. */
export type TokenEndpoint = Pick<
  RefreshTarget,
  "tokenEndpoint" | "registration" | "connectionId" | "allowPrivateNetwork"
>;

/**
 * Creates the function that sends a request to a token endpoint, or to another endpoint of an authorization server,
 * with the same egress guard as every call. Not tied to any caller: a refresh that has begun is finished. It rejects
 * with RelayError, and with TokenRequestNotSentError when nothing left the relay.
 *
 * @param upstream should limit answers to {@link MAX_TOKEN_ANSWER_BYTES}.
 * @param timeoutMs for the whole request. `signal` ends it earlier; `mayBegin` is called before its first byte.
 * @param onUnanswered called with the error when there is no answer; for the log, since nobody else is told the cause.
 */
export function createTokenEndpoint(
  upstream: Upstream,
  timeoutMs = DEFAULT_TIMEOUT_MS,
  onUnanswered: (target: TokenEndpoint, error: unknown) => void = () => {},
) {
  return async (
    target: TokenEndpoint,
    { headers, body, method = "POST" }: TokenRequest,
    signal?: AbortSignal,
    mayBegin?: () => boolean,
  ): Promise<TokenEndpointAnswer> => {
    if (signal?.aborted === true)
      throw new TokenRequestNotSentError(new RelayError("PROVIDER_TIMEOUT", "The relay is stopping."));
    const url = new URL(target.tokenEndpoint);
    const request: UpstreamRequest = {
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers,
      body: method === "GET" ? undefined : body,
      applicationId: target.registration.applicationId,
      connectionId: target.connectionId,
      allowPrivateNetwork: target.allowPrivateNetwork,
    };
    const limit = startLimit(timeoutMs, signal);
    const progress: RequestProgress = { queueMs: undefined };
    try {
      const limits = { deadline: Number.POSITIVE_INFINITY, signal: limit.signal, mayBegin };
      const answer = await upstream.send(request, limits, progress);
      const { statusCode, rawHeaders } = answer;
      const field = (name: string) => headerValue(rawHeaders, name);
      return { statusCode, body: answer.body.concat(), retryAfter: field("retry-after"), date: field("date") };
    } catch (error) {
      if (!signal?.aborted) onUnanswered(target, error);
      const isUnsent = progress.wasSent !== true && error instanceof RelayError;
      throw isUnsent ? new TokenRequestNotSentError(error) : error;
    } finally {
      limit.clear();
    }
  };
}

/**
 * Starts the deadline of a request. After a suspend (SIGSTOP, a sleeping machine) it has passed although the answer is
 * in the socket, and with it perhaps a rotated refresh token, so the sockets are read once more before the request is
 * aborted.
 */
function startLimit(
  timeoutMs: number,
  ending: AbortSignal | undefined,
): { readonly signal: AbortSignal; clear(): void } {
  const controller = new AbortController();
  const abort = () =>
    controller.abort(new RelayError("PROVIDER_TIMEOUT", "The token endpoint did not answer in time."));
  let timer = setTimeout(() => {
    timer = setTimeout(abort, LAST_READ_MS);
  }, timeoutMs);
  ending?.addEventListener("abort", abort);
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      ending?.removeEventListener("abort", abort);
    },
  };
}

/** The result of revoking a token at its provider. */
export type Revocation = "REVOKED" | "NOT_SUPPORTED" | "FAILED";

/** Tokens of one grant, in the clear. */
export interface TokenPair {
  readonly accessToken: Secret | undefined;
  readonly refreshToken: Secret | undefined;
}

/** Sends a request to the token endpoint of the target; rejects when there is no answer. */
type Send = (target: RefreshTarget, request: TokenRequest) => Promise<TokenEndpointAnswer>;

/**
 * Asks an authorization server once to revoke the tokens of a grant (RFC 7009 section 2.1). Revokes the refresh token
 * if there is one, since its access tokens end with it. Rejects when there is no answer.
 */
export async function revoke(
  send: Send,
  target: RefreshTarget,
  { accessToken, refreshToken }: TokenPair,
): Promise<Revocation> {
  if (target.revocationEndpoint === undefined) return "NOT_SUPPORTED";
  const token = refreshToken ?? accessToken;
  // An access token that was never fetched is empty.
  if (token === undefined || token.reveal() === "") return "NOT_SUPPORTED";
  const hint = refreshToken === undefined ? "access_token" : "refresh_token";
  const request = revocationRequestFrom(target.client, token, hint, target);
  const { statusCode } = await send({ ...target, tokenEndpoint: target.revocationEndpoint }, request);
  return statusCode >= 200 && statusCode < 300 ? "REVOKED" : "FAILED";
}

/**
 * Revokes tokens that came for a connection which is gone: nobody could use or disconnect them, and they would stay
 * valid for as long as the provider allows. Tries once; never rejects.
 */
export async function revokeOrphans(
  options: {
    readonly send: Send;
    readonly onRevocation: (connection: ConnectionKey, revocation: Revocation) => void;
  },
  connection: ConnectionKey,
  tokens: TokenPair,
  target: RefreshTarget,
): Promise<void> {
  options.onRevocation(connection, await revoke(options.send, target, tokens).catch(() => "FAILED" as const));
}

/**
 * Finds a parameter that is the whole host of an endpoint, and that is neither restricted by the definition nor fixed
 * for this client by the operator. Undefined when there is none: then the client's secret may be sent. A parameter in
 * front of the provider's own domain is fine, since the provider controls its subdomains. Pure.
 */
export function freeHostParameter(
  provider: Pick<Provider, "oauth2" | "oauth1" | "connectionValues" | "kind" | "hostTemplates">,
  { originParameters }: Pick<StoredOAuthClient, "originParameters">,
): string | undefined {
  const { connectionValues, kind, hostTemplates } = provider;
  const bounds = boundsOf(connectionValues);
  // Such a client's tokens or signatures have the access of the whole application, so API hosts count as well.
  const places = isOfClient(kind) ? hostTemplates.map(({ template }) => template) : [];
  return [...endpointsOf(provider), ...places]
    .flatMap((endpoint) => wholeHostOf(endpoint) ?? [])
    .find((parameter) => {
      const { choices = [], hosts = [] } = bounds.get(parameter) ?? {};
      return choices.length + hosts.length === 0 && !Object.hasOwn(originParameters, parameter);
    });
}
