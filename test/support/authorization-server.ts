import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type KoaContextWithOIDC, Provider } from "oidc-provider";
import { request } from "undici";
import { answerInteraction } from "./interaction-page.js";

/** A client as the server has registered it (RFC 7591 section 3.2.1). */
export interface RegisteredClient {
  readonly client_id: string;
  readonly client_secret: string;
}

/**
 * A real authorization server: npm `oidc-provider` with PKCE required, rotation of refresh tokens whose reuse ends the
 * grant, `iss` in the authorization response (RFC 9207), revocation (RFC 7009) and introspection (RFC 7662). Its
 * userinfo endpoint is the API behind it: it answers to access tokens that are good, and to no others.
 */
export interface AuthorizationServer {
  /** On `localhost`: for a browser another site than the relay's 127.0.0.1. */
  readonly origin: string;
  /** The protected resource. */
  readonly meUrl: string;
  /** Grant types of the token requests so far, oldest first; one that failed has its error's detail behind it. */
  readonly tokenRequests: string[];
  /** Grants that ended because a refresh token was used twice. */
  readonly reuses: string[];
  /** Lifetime in seconds of the access tokens that are issued from now on. */
  accessTokenSeconds: number;
  /** `Cross-Origin-Opener-Policy` of its pages from now on; undefined for none. */
  openerPolicy: string | undefined;
  providerDefinition(name: string, displayName: string): object;
  /** Registers the relay as a confidential client (RFC 7591). */
  register(redirectUri: string): Promise<RegisteredClient>;
  /** Registers a client that gets tokens of its own (RFC 6749 section 4.4). */
  registerForCredentials(): Promise<RegisteredClient>;
  /** Whether a token is good (RFC 7662). */
  isActive(client: RegisteredClient, token: string): Promise<boolean>;
  /** Whether the protected resource takes an access token. */
  takes(accessToken: string): Promise<boolean>;
  /** Ends a grant as the account's owner would in the account there. */
  revoke(client: RegisteredClient, token: string): Promise<void>;
  /** Posts to an endpoint as a client. */
  post(path: string, client: RegisteredClient, form: Readonly<Record<string, string>>): Promise<Answer>;
  close(): Promise<void>;
}

interface Answer {
  readonly statusCode: number;
  readonly text: string;
}

/** Starts it on a free port of 127.0.0.1. */
export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const origin = `http://localhost:${(listener.address() as AddressInfo).port}`;
  const settings = { accessTokenSeconds: 600, openerPolicy: undefined as string | undefined };
  const provider = createProvider(origin, settings);
  const answer = provider.callback();
  listener.on("request", (incoming, response) => {
    if (settings.openerPolicy) response.setHeader("cross-origin-opener-policy", settings.openerPolicy);
    if (!incoming.url?.startsWith("/interaction/")) return void answer(incoming, response);
    answerInteraction(provider, incoming, response).catch(() => response.destroy());
  });
  return Object.assign(settings, {
    origin,
    meUrl: `${origin}/me`,
    ...watch(provider),
    ...clientSide(origin),
    providerDefinition: (name: string, displayName: string) => definitionOf(origin, name, displayName),
    async close() {
      listener.closeAllConnections();
      listener.close();
      await once(listener, "close");
    },
  });
}

function createProvider(origin: string, settings: { readonly accessTokenSeconds: number }): Provider {
  return new Provider(origin, {
    pkce: { required: () => true },
    clockTolerance: 0,
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    ttl: { AccessToken: () => settings.accessTokenSeconds, RefreshToken: 3600, Grant: 3600, Session: 3600 },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
    },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    cookies: { keys: ["of this run"] },
  });
}

/** Hears what the server itself says of its token endpoint. */
function watch(provider: Provider) {
  const tokenRequests: string[] = [];
  const reuses: string[] = [];
  const grantTypeOf = ({ oidc }: KoaContextWithOIDC) => String(oidc.params?.["grant_type"]);
  provider.on("grant.success", (context) => void tokenRequests.push(grantTypeOf(context)));
  provider.on("grant.error", (context, error) => {
    const detail = `${error.error}: ${error.error_detail}`;
    tokenRequests.push(`${grantTypeOf(context)} ${detail}`);
  });
  provider.on("grant.revoked", (context, grantId) => {
    if (context.oidc.route === "token") reuses.push(grantId);
  });
  return { tokenRequests, reuses };
}

function clientSide(origin: string) {
  const post: AuthorizationServer["post"] = async (path, { client_id, client_secret }, form) => {
    const credentials = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    const headers = { authorization: `Basic ${credentials}`, "content-type": "application/x-www-form-urlencoded" };
    const body = new URLSearchParams(form).toString();
    const answer = await request(origin + path, { method: "POST", headers, body });
    return { statusCode: answer.statusCode, text: await answer.body.text() };
  };
  const register = async (metadata: object): Promise<RegisteredClient> => {
    const headers = { "content-type": "application/json" };
    const answer = await request(`${origin}/reg`, { method: "POST", headers, body: JSON.stringify(metadata) });
    return (await answer.body.json()) as RegisteredClient;
  };
  return {
    post,
    register: (redirectUri: string) =>
      register({ redirect_uris: [redirectUri], grant_types: ["authorization_code", "refresh_token"] }),
    registerForCredentials: () =>
      register({ redirect_uris: [], response_types: [], grant_types: ["client_credentials"] }),
    async isActive(client: RegisteredClient, token: string): Promise<boolean> {
      const { text } = await post("/token/introspection", client, { token });
      return JSON.parse(text).active;
    },
    async takes(accessToken: string): Promise<boolean> {
      const answer = await request(`${origin}/me`, { headers: { authorization: `Bearer ${accessToken}` } });
      await answer.body.dump();
      return answer.statusCode === 200;
    },
    async revoke(client: RegisteredClient, token: string): Promise<void> {
      await post("/token/revocation", client, { token });
    },
  };
}

function definitionOf(origin: string, name: string, displayName: string): object {
  return {
    name,
    displayName,
    apiOrigins: [origin],
    oauth2: {
      issuer: origin,
      authorizationEndpoint: `${origin}/auth`,
      tokenEndpoint: `${origin}/token`,
      revocationEndpoint: `${origin}/token/revocation`,
      defaultScopes: ["openid"],
      pkce: true,
      refreshTokenRotation: true,
    },
  };
}
