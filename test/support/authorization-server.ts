import type { KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { decodeProtectedHeader, exportJWK, type JWK, type JWTHeaderParameters, type JWTPayload, jwtVerify } from "jose";
import { errors, type KoaContextWithOIDC, Provider } from "oidc-provider";
import { request } from "undici";

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
  /** Public keys of those that sign assertions (RFC 7523), by `kid`; one that is taken out ends its account's access. */
  readonly signers: Map<string, KeyObject>;
  /** Assertions that were good, oldest first. */
  readonly assertions: Assertion[];
  /** Lifetime in seconds of the access tokens that are issued from now on. */
  accessTokenSeconds: number;
  /** `Cross-Origin-Opener-Policy` of its pages from now on; undefined for none. */
  openerPolicy: string | undefined;
  providerDefinition(name: string, displayName: string): object;
  /** Registers the relay as a confidential client (RFC 7591). */
  register(redirectUri: string): Promise<RegisteredClient>;
  /** Registers a client that gets tokens of its own (RFC 6749 section 4.4). */
  registerForCredentials(): Promise<RegisteredClient>;
  /** The same for one that proves itself by what it signs (`private_key_jwt`). */
  registerWithKey(publicKey: KeyObject, algorithm: string): Promise<Pick<RegisteredClient, "client_id">>;
  /** Registers a client without a secret that gets tokens for assertions (RFC 7523 section 2.1). */
  registerForAssertions(): Promise<Pick<RegisteredClient, "client_id">>;
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

/** What somebody has signed. */
interface Assertion {
  readonly header: JWTHeaderParameters;
  readonly claims: JWTPayload;
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
    ...takeAssertions(provider, origin),
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

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** RFC 7523 section 3: signed by a known key, for this server, by the client, once, and for an hour at most. */
function takeAssertions(provider: Provider, origin: string) {
  const signers = new Map<string, KeyObject>();
  const assertions: Assertion[] = [];
  async function verified(text: string, clientId: string): Promise<Assertion> {
    const header = decodeProtectedHeader(text) as JWTHeaderParameters;
    const key = signers.get(header.kid ?? "");
    if (key === undefined) throw new Error("the key is not known");
    const rules = { audience: `${origin}/token`, issuer: clientId, maxTokenAge: 3600, requiredClaims: ["exp", "jti"] };
    const { payload: claims } = await jwtVerify(text, key, rules);
    if ((claims.exp ?? 0) - (claims.iat ?? 0) > 3600) throw new Error("it lasts too long");
    if (assertions.some((other) => other.claims.jti === claims.jti)) throw new Error("it was used before");
    return { header, claims };
  }
  const grant = async (context: KoaContextWithOIDC) => {
    const { client, params } = context.oidc;
    if (client === undefined) throw new errors.InvalidClient("there is none");
    const assertion = await verified(String(params?.["assertion"]), client.clientId).catch((error: Error) => {
      throw new errors.InvalidGrant(error.message);
    });
    assertions.push(assertion);
    const token = new provider.ClientCredentials({ client, scope: undefined } as never);
    context.body = { access_token: await token.save(), expires_in: token.expiration, token_type: "Bearer" };
  };
  provider.registerGrantType(JWT_BEARER, grant, ["assertion"]);
  return { signers, assertions };
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
  const registerWith = (more: object) => register({ redirect_uris: [], response_types: [], ...more });
  const jwksOf = async (key: KeyObject, alg: string): Promise<{ keys: JWK[] }> => ({
    keys: [{ ...(await exportJWK(key)), alg, use: "sig" }],
  });
  return {
    post,
    register: (redirectUri: string) =>
      register({ redirect_uris: [redirectUri], grant_types: ["authorization_code", "refresh_token"] }),
    registerForCredentials: () => registerWith({ grant_types: ["client_credentials"] }),
    registerForAssertions: () => registerWith({ grant_types: [JWT_BEARER], token_endpoint_auth_method: "none" }),
    registerWithKey: async (publicKey: KeyObject, algorithm: string) =>
      registerWith({
        grant_types: ["client_credentials"],
        token_endpoint_auth_method: "private_key_jwt",
        token_endpoint_auth_signing_alg: algorithm,
        jwks: await jwksOf(publicKey, algorithm),
      }),
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

type Interaction = Awaited<ReturnType<Provider["interactionDetails"]>>;

/** Where a test's user signs in and consents, in one page each, as at any provider. */
async function answerInteraction(
  provider: Provider,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const interaction = await provider.interactionDetails(incoming, response);
  if (incoming.method === "POST") {
    const form = new URLSearchParams(await text(incoming));
    const result = await resultOf(provider, interaction, form);
    return provider.interactionFinished(incoming, response, result, { mergeWithLastSubmission: true });
  }
  response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
  response.end(pageFor(interaction.prompt.name));
}

async function resultOf(provider: Provider, interaction: Interaction, form: URLSearchParams) {
  if (form.get("answer") === "deny") return { error: "access_denied", error_description: "The user said no." };
  if (interaction.prompt.name === "login") return { login: { accountId: form.get("account") ?? "" } };
  return { consent: { grantId: await grantFor(provider, interaction) } };
}

async function grantFor(provider: Provider, { session, params, prompt }: Interaction): Promise<string> {
  const grant = new provider.Grant({ accountId: session?.accountId ?? "", clientId: String(params["client_id"]) });
  const scopes = prompt.details["missingOIDCScope"];
  if (Array.isArray(scopes)) grant.addOIDCScope(scopes.join(" "));
  return grant.save();
}

function pageFor(prompt: string): string {
  const fields =
    prompt === "login"
      ? `<label>Account <input name="account" required autofocus></label><button>Sign in</button>`
      : `<button name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button>`;
  return `<!doctype html><title>Provider</title><link rel="icon" href="data:,"><form method="post">${fields}</form>`;
}
