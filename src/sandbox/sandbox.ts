import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import {
  type Account,
  createAccount,
  createAuthorizationCodes,
  createGrants,
  type Grant,
  InvalidParameter,
  type TokenResponse,
} from "./grants.js";
import { type Client, DEFAULT_SCOPE, type HoldTokenAnswer, type OAuthServer } from "./oauth-routes.js";
import { type Answer, createRequestLog, errorAnswer, type SandboxRequest } from "./router.js";
import { createRespond, type ResourceRoute, type Respond } from "./routes.js";

/** How a sandbox is started; every member has a default. */
export interface SandboxOptions {
  /** Port; default 0: any free one. */
  readonly port?: number;
  /** OAuth clients; by default one, `sandbox-client`, with a random secret. The first owns what tests issue. */
  readonly clients?: readonly [Client, ...Client[]];
  /** Clock in milliseconds since the epoch; `Date.now` by default. */
  readonly now?: () => number;
  /** How long after its first use a refresh token may be used again, in milliseconds; default 0: never. */
  readonly refreshGraceMs?: number;
  /** Whether using a refresh token twice revokes its grant (the default) or is only refused. */
  readonly endsReusedGrants?: boolean;
  /** Delays each answer of the token endpoint until it resolves; by default none is delayed. */
  readonly holdTokenAnswer?: HoldTokenAnswer;
  /** Further resources, given the sandbox's origin; none by default. */
  readonly routes?: (origin: string) => readonly ResourceRoute[];
}

/** A running sandbox provider. */
export interface Sandbox {
  /** `http://127.0.0.1:PORT`. */
  readonly origin: string;
  /** The OAuth client to use with it, in the form that `relay client put` reads. */
  readonly client: Client;
  /** The last requests it received, oldest first; always the same array. */
  readonly requests: readonly SandboxRequest[];
  /** Issues tokens as the token endpoint would; expires_in is 3600 by default. */
  issueToken(options?: IssueTokenOptions): TokenResponse;
  /** Accepts an access token made elsewhere, until it is revoked. */
  acceptToken(accessToken: string, account?: Partial<Account>): void;
  /** Revokes an access token; its refresh token stays valid. */
  revoke(accessToken: string): void;
  /** ProtoJSON of `relay.admin.v1.Provider` for this sandbox; the name is `sandbox` by default. */
  providerDefinition(name?: string): ReturnType<typeof providerDefinitionFromOrigin>;
  /** Stops listening and closes every connection, even those in use. */
  close(): Promise<void>;
}

/** What tests can set for a token. */
interface IssueTokenOptions {
  readonly account?: Partial<Account>;
  readonly scope?: string;
  readonly expiresInSeconds?: number;
}

/** Most requests in the log, and most content: a thousand small requests fit, or a few of 10 MiB. */
const MAX_LOG_REQUESTS = 1000;
const MAX_LOG_BYTES = 64 * 1024 * 1024;

/** Starts the sandbox provider. Rejects when the address cannot be listened on. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { now = Date.now } = options;
  const clients = options.clients ?? ([{ client_id: "sandbox-client", client_secret: randomId() }] as const);
  const oauth = {
    clients,
    grants: createGrants({
      now,
      randomId,
      refreshGraceMs: options.refreshGraceMs,
      endsReusedGrants: options.endsReusedGrants,
    }),
    codes: createAuthorizationCodes({ now, randomId }),
    holdTokenAnswer: options.holdTokenAnswer,
  };
  const log = createRequestLog({ maxRequests: MAX_LOG_REQUESTS, maxBytes: MAX_LOG_BYTES });
  const server = createServer({ keepAliveTimeout: 60_000 });
  const origin = await listen(server, options.port ?? 0);
  // A connection that cannot be accepted, for lack of file descriptors, must not crash the process.
  server.on("error", () => {});
  server.on("request", createListener(createRespond(oauth, options.routes?.(origin) ?? [], log)));
  const [client] = clients;
  return {
    origin,
    client,
    requests: log.requests,
    ...createTokenControls(oauth, client.client_id),
    providerDefinition: (name = "sandbox") => providerDefinitionFromOrigin(origin, name),
    close: () => close(server),
  };
}

function createTokenControls({ grants }: OAuthServer, client_id: string) {
  const createGrant = (account: Partial<Account> | undefined, scope = DEFAULT_SCOPE): Grant => {
    return { account: createAccount(account), client_id, scope, revoked: false };
  };
  return {
    issueToken: ({ account, scope, expiresInSeconds }: IssueTokenOptions = {}) =>
      grants.issue(createGrant(account, scope), { expiresInSeconds }),
    acceptToken: (accessToken: string, account?: Partial<Account>) => grants.accept(accessToken, createGrant(account)),
    revoke: (accessToken: string) => grants.revoke(accessToken),
  };
}

async function listen(server: Server, port: number): Promise<string> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The random part of tokens, codes and secrets. */
function randomId(): string {
  return randomBytes(24).toString("base64url");
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

/** The ProtoJSON of `relay.admin.v1.Provider` for the sandbox at `origin`; members with the default value are omitted. */
function providerDefinitionFromOrigin(origin: string, name: string) {
  return {
    name,
    displayName: "Sandbox",
    apiOrigins: [origin],
    oauth2: {
      authorizationEndpoint: `${origin}/oauth/authorize`,
      tokenEndpoint: `${origin}/oauth/token`,
      revocationEndpoint: `${origin}/oauth/revoke`,
      pkce: true,
      clientAuthentication: "client_secret_basic",
    },
  };
}

/** Largest request content; above the relay's default limit, so that tests hit the relay's limit first. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** Connects node:http to `respond`. Every failure becomes an answer or a closed connection and never crashes the process. */
function createListener(respond: Respond): RequestListener {
  return (message, response) => {
    // Writing to a disconnected client emits an error; there is nobody left to answer.
    response.on("error", () => {});
    void answer(message, response, respond);
  };
}

async function answer(message: IncomingMessage, response: ServerResponse, respond: Respond): Promise<void> {
  try {
    const { method = "", url: target = "", httpVersion, rawHeaders } = message;
    const body = await readBody(message, MAX_BODY_BYTES);
    sendAnswer(response, await respond({ method, target, httpVersion, rawHeaders, body }));
  } catch (error) {
    answerFailure(response, error);
  }
}

function answerFailure(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  try {
    sendAnswer(response, answerFromError(error));
  } catch {
    // The failed attempt left a status line that cannot be sent: all that remains is to close the connection.
    response.destroy();
  }
}

function answerFromError(error: unknown): Answer {
  if (error instanceof InvalidParameter) return errorAnswer(400, "invalid_request", `${error.message}.`);
  if (error instanceof BodyTooLarge) {
    return errorAnswer(413, "content_too_large", "The content is too large.", ["Connection", "close"]);
  }
  if (isFieldError(error)) return errorAnswer(400, "invalid_request", "A header field cannot contain this text.");
  return errorAnswer(500, "server_error", "The sandbox failed.");
}

/** Codes of node:http for a field or reason phrase that would break the message. */
function isFieldError(error: unknown): boolean {
  const code = error instanceof Error ? Reflect.get(error, "code") : undefined;
  return code === "ERR_INVALID_CHAR" || code === "ERR_INVALID_HTTP_TOKEN";
}

/** The content is larger than the sandbox accepts. */
class BodyTooLarge extends Error {}

/**
 * Reads the whole content. Rejects with {@link BodyTooLarge} above `maxBytes` and discards the rest; rejects with the
 * connection's error when the client disconnects before the end.
 */
function readBody(message: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    message.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      reject(new BodyTooLarge());
    });
    message.on("end", () => resolve(Buffer.concat(chunks)));
    message.on("error", reject);
    message.on("close", () => reject(new Error("connection closed before the end of the content")));
  });
}

/**
 * Writes an answer: a buffer in one write with its Content-Length, a stream chunked. node:http omits the content for
 * HEAD. Throws, before anything is sent, when a field is invalid in HTTP.
 */
function sendAnswer(response: ServerResponse, answer: Answer): void {
  const { statusCode, reason, fields, body } = answer;
  if (typeof body === "function") {
    response.writeHead(statusCode, reason, [...fields]);
    sendStream(response, body);
    return;
  }
  response.writeHead(statusCode, reason, [...fields, ...contentLength(statusCode, body)]);
  response.end(body);
}

function sendStream(response: ServerResponse, start: () => AsyncIterable<Uint8Array>): void {
  if (response.req.method === "HEAD") {
    response.end();
    return;
  }
  // A failed stream has already destroyed the response: the client sees a truncated answer, and nobody else needs to
  // know.
  pipeline(start(), response, () => {});
}

/** https://www.rfc-editor.org/rfc/rfc9110#section-8.6: none on 204; on 304 it would describe another answer. */
function contentLength(statusCode: number, body: Buffer | undefined): string[] {
  if (statusCode === 204 || statusCode === 304) return [];
  return ["Content-Length", String(body?.length ?? 0)];
}
