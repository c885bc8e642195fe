import { RelayError } from "../model/errors.js";
import { boundsOf } from "../providers/endpoint.js";
import { endpointsOf, type Provider } from "../providers/provider.js";
import { headerValue } from "../upstream/exchange.js";
import type { RequestProgress, Upstream, UpstreamRequest } from "../upstream/request.js";
import type { Connection } from "./connection.js";
import { isOfClient } from "./credentials.js";
import type { RegisteredClient, StoredOAuthClient } from "./oauth-client.js";
import type { TokenAnswerHabits, TokenEndpointAnswer } from "./token-answer.js";
import { type OAuthClient, type RefreshHabits, type TokenRequest, TokenRequestNotSentError } from "./token-request.js";
import type { ToldMembers } from "./token-response.js";

/** A browser, or an operator, waits for a code that is redeemed, or a token that is revoked. Milliseconds. */
const DEFAULT_TIMEOUT_MS = 8000;
/** A process that stood still may have the answer waiting; timers come before sockets. Milliseconds. */
const LAST_READ_MS = 250;

/** Where and how the token of one connection is refreshed. */
export interface RefreshTarget extends RefreshHabits, TokenAnswerHabits {
  /** Where refresh requests go; the endpoint that the breaker counts. */
  readonly tokenEndpoint: string;
  /** RFC 7009; undefined: tokens cannot be revoked. */
  readonly revocationEndpoint: string | undefined;
  /** Whose tokens these are: sockets are kept apart by it where the operator wants that. */
  readonly connectionId: string;
  readonly client: OAuthClient;
  /** Which client that is in the store. */
  readonly registration: RegisteredClient;
  /** Seconds to assume when the answer has no expires_in; undefined: unknown. */
  readonly defaultExpiresInS: number | undefined;
  readonly allowPrivateNetwork: boolean;
  /** Of a connection whose tokens the relay gets for secret values; undefined: it has a refresh token. */
  readonly grant?:
    | {
        /**
         * Gets what the token endpoint answers to a request for one, or answers itself where the provider takes what the relay
         * signs. `now` is milliseconds since the epoch.
         */
        readonly ask: (
          send: (request: TokenRequest) => Promise<TokenEndpointAnswer>,
          now: number,
        ) => Promise<TokenEndpointAnswer>;
        /** The client is the connection's own: that it is refused says nothing of others. */
        readonly isOwnClient: boolean;
        /** Every secret that the definition asks for is there: one that is older may have others. */
        readonly isWhole: boolean;
      }
    | undefined;
  /** The values that stand with the connection after a token response that tells them. */
  readonly valuesAfter: (told: ToldMembers) => Connection["originParameters"];
}

/** What of a connection's authorization server one request needs. */
export type TokenEndpoint = Pick<
  RefreshTarget,
  "tokenEndpoint" | "registration" | "connectionId" | "allowPrivateNetwork"
>;

/**
 * Asks a token endpoint, or another one of an authorization server that is asked alike, through the same guarded way
 * out as every call. Not tied to any caller: a refresh that has begun is finished. Rejects with RelayError,
 * TokenRequestNotSentError when nothing left the relay.
 *
 * @param timeoutMs for the whole request. `signal` ends it before; `mayBegin` is asked before its first byte.
 */
export function createTokenEndpoint(upstream: Upstream, timeoutMs = DEFAULT_TIMEOUT_MS) {
  return async (
    target: TokenEndpoint,
    { headers, body, method = "POST" }: TokenRequest,
    signal?: AbortSignal,
    mayBegin?: () => boolean,
  ): Promise<TokenEndpointAnswer> => {
    if (signal?.aborted === true)
      throw new TokenRequestNotSentError(new RelayError("PROVIDER_TIMEOUT", "The relay ends."));
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
      const isUnsent = progress.wasSent !== true && error instanceof RelayError;
      throw isUnsent ? new TokenRequestNotSentError(error) : error;
    } finally {
      limit.clear();
    }
  };
}

/**
 * The deadline. After a halt of the process (SIGSTOP, a suspended machine) it has passed while the answer lies in the
 * socket, and with it a rotation that the provider has performed: so the sockets are read once more before the end.
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

/** An endpoint whose whole host is a parameter: whoever chooses it would be sent the client's secret. */
const WHOLE_HOST = /^https:\/\/\{([^}]*)\}(?:[:/?]|$)/;

/**
 * The parameter that is the whole host of an endpoint and that neither the definition bounds nor the operator has fixed for
 * this client; undefined when there is none, and the client's secret may be sent. A parameter in front of the provider's own
 * domain is fine: who has the domain has what is below it. Pure.
 */
export function freeHostParameter(
  provider: Pick<Provider, "oauth2" | "oauth1" | "connectionValues" | "kind" | "hostTemplates">,
  { originParameters }: Pick<StoredOAuthClient, "originParameters">,
): string | undefined {
  const { connectionValues, kind, hostTemplates } = provider;
  const bounds = boundsOf(connectionValues);
  // The tokens of such a client, or its signature, are the application's own.
  const places = isOfClient(kind) ? hostTemplates.map(({ template }) => template) : [];
  return [...endpointsOf(provider), ...places]
    .flatMap((endpoint) => WHOLE_HOST.exec(endpoint)?.[1] ?? [])
    .find((parameter) => {
      const { choices = [], hosts = [] } = bounds.get(parameter) ?? {};
      return choices.length + hosts.length === 0 && !Object.hasOwn(originParameters, parameter);
    });
}
