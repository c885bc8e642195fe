import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import OAuth from "oauth-1.0a";

/** One signed request as the provider got it. */
export interface SignedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** Protocol parameters of its Authorization field (RFC 5849 section 3.5.1), decoded. */
  readonly oauth: Readonly<Record<string, string>>;
  readonly realm: string | undefined;
}

/**
 * A real OAuth 1.0a provider (RFC 5849) that checks signatures with npm `oauth-1.0a`, another implementation than the
 * relay's. It takes each nonce once, each verifier once, and answers problems in the words of OAuth Problem Reporting.
 */
export interface SignedProvider {
  readonly origin: string;
  readonly consumer: { readonly client_id: string; readonly client_secret: string };
  /** Every request whose signature was right. */
  readonly requests: SignedRequest[];
  /** Problems that were answered, oldest first. */
  readonly problems: string[];
  /** What the API answers to requests that are signed well; the request itself by default. */
  answer: ((request: SignedRequest) => { readonly status: number; readonly body: string } | undefined) | undefined;
  /** Waited for before the API answers. */
  delay: (() => Promise<unknown>) | undefined;
  /** Called in the moment before a token is answered, and when the answer has left. */
  beforeToken: (() => void) | undefined;
  afterToken: (() => void) | undefined;
  /** Changes the form that a token endpoint answers. */
  changeAnswer: ((form: URLSearchParams) => void) | undefined;
  /** A token as the owner of an account would see it. */
  issueToken(): { readonly oauth_token: string; readonly oauth_token_secret: string };
  /** Ends a token as its owner would in the account there. */
  revoke(token: string): void;
  definition(name: string, members?: object): object;
  close(): Promise<void>;
}

const HASHES: Readonly<Record<string, string>> = { "HMAC-SHA1": "sha1", "HMAC-SHA256": "sha256" };

/** Starts it on a free port of 127.0.0.1. */
export async function startSignedProvider(): Promise<SignedProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const consumer = { client_id: "consumer key/+", client_secret: "CANARY_consumer&secret=%" };
  const temporary = new Map<string, { readonly secret: string; readonly callback: string; verifier?: string }>();
  const tokens = new Map<string, string>();
  const nonces = new Set<string>();
  const newToken = () => `CANARY_${randomBytes(12).toString("base64")}`;

  const provider: SignedProvider = {
    origin,
    consumer,
    requests: [],
    problems: [],
    answer: undefined,
    delay: undefined,
    beforeToken: undefined,
    afterToken: undefined,
    changeAnswer: undefined,
    issueToken() {
      const issued = { oauth_token: newToken(), oauth_token_secret: newToken() };
      tokens.set(issued.oauth_token, issued.oauth_token_secret);
      return issued;
    },
    revoke: (token) => void tokens.delete(token),
    definition: (name, members = {}) => ({
      ...{ name, displayName: "Signed", kind: "oauth1", apiOrigins: [origin] },
      oauth1: {
        temporaryCredentialEndpoint: `${origin}/oauth/request_token?scope=a%20b`,
        authorizationEndpoint: `${origin}/oauth/authorize?lang=en`,
        tokenEndpoint: `${origin}/oauth/access_token`,
        scopeParameter: "perms",
      },
      ...members,
    }),
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };

  /** Undefined when the signature is right; the problem otherwise. */
  function problemOf(
    { method, target, headers, body, oauth }: SignedRequest,
    secretOf: (token: string) => string | undefined,
  ) {
    const { oauth_signature: signature, ...covered } = oauth;
    const {
      oauth_consumer_key: key,
      oauth_token: token,
      oauth_signature_method: means = "",
      oauth_nonce: nonce = "",
    } = covered;
    if (key !== consumer.client_id) return "consumer_key_unknown";
    if (Math.abs(Number(covered["oauth_timestamp"]) - Date.now() / 1000) > 300) return "timestamp_refused";
    const secret = token === undefined ? "" : secretOf(token);
    if (secret === undefined) return "token_rejected";
    const isForm = headers["content-type"]?.startsWith("application/x-www-form-urlencoded");
    const verifier = new OAuth({
      consumer: { key, secret: consumer.client_secret },
      signature_method: means,
      hash_function: (text, signingKey) =>
        means === "PLAINTEXT"
          ? signingKey
          : createHmac(HASHES[means] ?? "", signingKey)
              .update(text)
              .digest("base64"),
    });
    const data = isForm ? formOf(body) : {};
    // biome-ignore lint/suspicious/noExplicitAny: its types know no further parameters.
    const right = verifier.getSignature({ url: origin + target, method, data }, secret, covered as any);
    if (signature !== right) return "signature_invalid";
    if (nonce.length < 8 || nonces.has(nonce)) return "nonce_used";
    nonces.add(nonce);
    return undefined;
  }

  function refuse(response: ServerResponse, problem: string): void {
    provider.problems.push(problem);
    response.writeHead(401, { "www-authenticate": `OAuth realm="x", oauth_problem="${problem}"` });
    response.end(`oauth_problem=${problem}`);
  }

  function answerForm(response: ServerResponse, form: Readonly<Record<string, string>>, sent?: () => void): void {
    const parameters = new URLSearchParams(form);
    provider.changeAnswer?.(parameters);
    response.writeHead(200, { "content-type": "application/x-www-form-urlencoded" });
    response.end(parameters.toString(), sent);
  }

  function authorize(url: URL, response: ServerResponse): void {
    const token = url.searchParams.get("oauth_token") ?? "";
    const known = temporary.get(token);
    if (known === undefined) return void response.writeHead(400).end();
    const callback = new URL(known.callback);
    if (url.searchParams.get("perms") === "none") callback.searchParams.set("denied", token);
    else {
      known.verifier = newToken();
      callback.searchParams.set("oauth_token", token);
      callback.searchParams.set("oauth_verifier", known.verifier);
    }
    response.writeHead(302, { location: callback.href }).end();
  }

  server.on("request", async (incoming: IncomingMessage, response: ServerResponse) => {
    const url = new URL(incoming.url ?? "", origin);
    if (url.pathname === "/oauth/authorize") return authorize(url, response);
    const request = await read(incoming);
    const isToken = url.pathname === "/oauth/access_token";
    const secretOf = (token: string) => (isToken ? temporary.get(token)?.secret : tokens.get(token));
    const problem = problemOf(request, secretOf);
    if (problem !== undefined) return refuse(response, problem);
    provider.requests.push(request);
    const { oauth_token: token = "", oauth_verifier: verifier = "", oauth_callback: callback = "" } = request.oauth;
    if (url.pathname === "/oauth/request_token") {
      const issued = { oauth_token: newToken(), oauth_token_secret: newToken(), oauth_callback_confirmed: "true" };
      temporary.set(issued.oauth_token, { secret: issued.oauth_token_secret, callback });
      return answerForm(response, issued);
    }
    if (isToken) {
      if (verifier === "" || temporary.get(token)?.verifier !== verifier) return refuse(response, "verifier_invalid");
      temporary.delete(token);
      provider.beforeToken?.();
      return answerForm(response, { ...provider.issueToken(), screen_name: "ada" }, provider.afterToken);
    }
    const delay = provider.delay;
    provider.delay = undefined;
    await delay?.();
    const { status, body } = provider.answer?.(request) ?? { status: 200, body: JSON.stringify(request) };
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  return provider;
}

async function read(incoming: IncomingMessage): Promise<SignedRequest> {
  const { method = "", url: target = "", headers } = incoming;
  const body = (await buffer(incoming)).toString("latin1");
  const field = headers.authorization ?? "";
  const pairs = [...field.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value] as const);
  const { realm, ...oauth } = Object.fromEntries(pairs.map(([name, value]) => [name, decodeURIComponent(value)]));
  return { method, target, headers, body, oauth: field.startsWith("OAuth ") ? oauth : {}, realm };
}

/** Values that stand more than once become a list, as the library wants them. */
function formOf(body: string): Record<string, string | string[]> {
  const form: Record<string, string | string[]> = {};
  const parameters = new URLSearchParams(Buffer.from(body, "latin1").toString());
  for (const name of new Set(parameters.keys())) {
    const values = parameters.getAll(name);
    form[name] = values.length === 1 ? (values[0] ?? "") : values;
  }
  return form;
}
