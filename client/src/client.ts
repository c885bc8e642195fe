import { base64From, createCallToken, type NewCallToken } from "./proof.js";

export { type CallRule, createCallToken, type NewCallToken, signUser } from "./proof.js";
export { verifyWebhook, type WebhookEvent } from "./webhook.js";

/** Address of the relay, and credentials of the caller. */
export interface RelayClientOptions {
  /** The relay's public address, such as `https://relay.example.com`. */
  readonly url: string;
  /** The application's public key. */
  readonly publicKey: string;
  /** The application's private key: for servers only; needed for `token()`, links and signatures. */
  readonly privateKey?: string;
  /** A call token instead of the private key; it is valid for one user. */
  readonly callToken?: string;
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/** One call, as on the JSON route. */
export interface CallOptions {
  /** Absolute https URL on one of the provider's API origins. */
  readonly url: string;
  /** Default: `GET`. Also accepts the relay's own methods, such as `FORM`, `MULTIFORM-POST` and `GETFILE`. */
  readonly method?: string;
  /** The body as a JSON object; for GET and HEAD, the query parameters. */
  readonly payload?: Readonly<Record<string, unknown>>;
  /** The body as raw bytes, instead of `payload`. */
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  /** Merged into the query of the url. */
  readonly queryString?: Readonly<Record<string, unknown>>;
  /** Encodes an array in the query or in a form as one pair per element. */
  readonly explodeArrays?: boolean;
  /** Aborts the wait for the answer; the provider may still have performed the request. */
  readonly signal?: AbortSignal;
}

/** The provider's answer to a call, below status 400. */
export interface CallAnswer<Data = unknown> {
  readonly status: number;
  /** Parsed JSON, or text; base64 if `dataEncoding` says so. JavaScript rounds JSON numbers beyond 2^53. */
  readonly data: Data;
  /** Media type without parameters. */
  readonly contentType: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly dataEncoding: "base64" | "json" | undefined;
  /** The end of the body may be missing: there was no way to tell. */
  readonly possiblyTruncated: boolean;
  /** Identifies the call in the relay's log and records. */
  readonly callId: string;
}

/** A user's connection to one provider, as listed by `connections()`. */
export interface ConnectionSummary {
  readonly providerName: string;
  readonly state: "ACTIVE" | "REAUTHORIZATION_REQUIRED";
  readonly stateReason?: string;
  readonly [member: string]: unknown;
}

/** Options of {@link RelayClient.connectLink}. */
export interface ConnectLinkOptions {
  readonly userId: string;
  /** Name of one provider. Default: the page with all providers. */
  readonly provider?: string;
  /** Where the browser returns to: one of the application's allowed addresses. */
  readonly redirectUri?: string;
}

/** A user's account at one provider. */
export interface Account {
  /**
   * Performs one call with the user's token.
   *
   * @throws RelayCallError unless the answer has a status below 400; TypeError, and nothing is sent, for a payload with a
   *   bigint or a cycle.
   */
  call<Data = unknown>(call: CallOptions): Promise<CallAnswer<Data>>;
  /**
   * A `fetch` for this account's provider, to pass to an SDK: takes the provider's own URLs and returns the provider's
   * answers, including errors and redirects. Needs the private key or a call token.
   */
  readonly fetch: typeof globalThis.fetch;
  /** Base URL for an SDK; give the SDK a call token as its access token. @param host a host of the provider. */
  via(host: string): string;
  /** Creates a call token for this account; by default for 15 minutes and any request. Needs the private key. */
  token(limits?: TokenLimits): Promise<string>;
}

type TokenLimits = Pick<NewCallToken, "ttlSeconds" | "rules">;

/** Client of the relay for one application. */
export interface RelayClient {
  account(userId: string, provider: string): Account;
  /** Creates a one-time address of the connect page, for one browser, valid for 15 minutes. Needs the private key. */
  connectLink(options: ConnectLinkOptions): Promise<{ readonly connectUri: string; readonly expireTime: string }>;
  /** Lists the user's connections, without tokens. */
  connections(userId: string): Promise<readonly ConnectionSummary[]>;
  /** Deletes a connection, and revokes its token at the provider where possible. */
  disconnect(userId: string, provider: string): Promise<{ readonly revocation: string }>;
}

/** Thrown for a request without a successful answer; for a call, one with a status below 400. */
export class RelayCallError extends Error {
  override readonly name = "RelayCallError";
  /** One of the relay's documented error types; `RELAY_UNREACHABLE` when no relay answered. */
  readonly errorType: string;
  /** Status code of the result row: the provider's own for `API_ERROR`; 0 when nothing answered. */
  readonly statusCode: number;
  /** Identifies the call in the relay's log and records. */
  readonly callId: string | undefined;
  /** The same call may be retried after a while: nothing was done, or repeating it is harmless. */
  readonly retryable: boolean;
  /** The provider's answer, if it was one. */
  readonly data: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(message: string, facts: ErrorFacts, options?: ErrorOptions) {
    super(message, options);
    this.errorType = facts.errorType;
    this.statusCode = facts.statusCode;
    this.callId = facts.callId;
    this.retryable = facts.retryable;
    this.data = facts.data;
    this.headers = facts.headers ?? {};
  }
}

type ErrorFacts = Pick<RelayCallError, "errorType" | "statusCode" | "callId" | "retryable"> &
  Partial<Pick<RelayCallError, "data" | "headers">>;

/** A row of the response envelope. */
interface Row extends Partial<Omit<CallAnswer, "status">> {
  readonly pincStatus: "success" | "error";
  readonly statusCode: number;
  readonly errorType?: string;
  readonly inernalError?: string;
}

/**
 * Creates a client. It opens no connections and has no state except its options.
 *
 * @throws TypeError for a url that is none of a relay, and for a private key or call token that no header can hold.
 */
export function createRelayClient(given: RelayClientOptions): RelayClient {
  const url = addressFrom(given.url);
  const options = { ...given, ...secretFrom(given, "privateKey"), ...secretFrom(given, "callToken"), url };
  const { publicKey, url: base } = options;
  const viaFor = (provider: string) => (host: string) => `${base}/via/${encodeURIComponent(provider)}/${host}`;
  const tokenFor = async (userId: string, provider: string, limits?: TokenLimits) =>
    createCallToken({ ...limits, publicKey, userId, privateKey: privateKeyOf(options), providers: [provider] });
  const queryOf = (userId: string) => new URLSearchParams({ user_id: userId, public_key: publicKey });
  return {
    account: (userId, provider) => ({
      async call<Data>({ signal, body, headers = {}, ...call }: CallOptions) {
        const method = call.method ?? "GET";
        const described = { ...call, method, headers: callHeaders(headers), ...(body && { body: base64From(body) }) };
        const path = `/oauth/method/${encodeURIComponent(provider)}/call?${queryOf(userId)}`;
        const isSafe = SAFE_METHOD.test(method);
        return answerFrom<Data>(await ask(options, "POST", path, { body: described, signal, isSafe }), isSafe);
      },
      fetch: createFetch(options, viaFor(provider), () => tokenFor(userId, provider)),
      via: viaFor(provider),
      token: (limits) => tokenFor(userId, provider, limits),
    }),
    async connectLink({ userId, provider, redirectUri }) {
      const body = { public_key: publicKey, user_id: userId, provider_name: provider, redirect_uri: redirectUri };
      return resultFrom(await ask(options, "POST", "/oauth/connect-links", { body, isSafe: true }));
    },
    async connections(userId) {
      const answered = await ask(options, "GET", `/oauth/connections?${queryOf(userId)}`, { isSafe: true });
      return resultFrom<{ connections?: ConnectionSummary[] }>(answered).connections ?? [];
    },
    async disconnect(userId, provider) {
      const path = `/oauth/connections/${encodeURIComponent(provider)}?${queryOf(userId)}`;
      return resultFrom(await ask(options, "DELETE", path, { isSafe: true }));
    },
  };
}

/** Without a slash at its end. Checked here, because the errors of `fetch` and `URL` quote a password in it. */
function addressFrom(text: string): string {
  try {
    const { protocol, username, password, search, hash, href } = new URL(text);
    const isRelays = /^https?:$/.test(protocol) && username + password + search + hash === "";
    if (isRelays) return href.replace(/[/?#]+$/, "");
  } catch {
    // Refused below, without what the error quotes.
  }
  throw new TypeError("url must be http(s)://host[:port][/path].");
}

/** A value of a header (RFC 9110 section 5.5). */
const HEADER_VALUE = /^[\t -~\x80-\xff]*$/;

/** Without the line break at the end of its file. Checked here, because the error of `fetch` quotes the value. */
function secretFrom(options: RelayClientOptions, name: "privateKey" | "callToken"): Partial<RelayClientOptions> {
  const value = options[name]?.trimEnd();
  if (value === undefined) return {};
  if (HEADER_VALUE.test(value)) return { [name]: value };
  throw new TypeError(`${name} has a line break or another character that a header cannot hold.`);
}

/**
 * Sends the proof in `Authorization`, which fetch removes when a redirect leads to another host; so the proof reaches
 * only the relay.
 */
function createFetch(
  options: RelayClientOptions,
  via: (host: string) => string,
  newToken: () => Promise<string>,
): typeof globalThis.fetch {
  const { callToken, fetch = globalThis.fetch } = options;
  // Only this provider's own routes pass: a link in its answers must not reach another provider's account.
  const ownPlaces = via("");
  return async (input, init) => {
    const isRequest = input instanceof Request;
    const url = new URL(isRequest ? input.url : input);
    url.hash = "";
    // Pagination links rewritten by the relay already lead through it.
    const target = url.href.startsWith(ownPlaces) ? url.href : via(url.host) + url.pathname + url.search;
    const headers = new Headers(init?.headers ?? (isRequest ? input.headers : undefined));
    headers.set("authorization", `Bearer ${callToken ?? (await newToken())}`);
    return fetch(isRequest ? await requestTo(target, input, init?.signal ?? input.signal) : target, {
      ...init,
      headers,
    });
  };
}

/** Reads the body first: copied, it would be a stream, which browsers send only over HTTP/2, if at all. */
async function requestTo(target: string, request: Request, signal: AbortSignal): Promise<Request> {
  signal.throwIfAborted();
  if (/^(?:GET|HEAD)$/.test(request.method)) return new Request(target, request);
  const { method, redirect, keepalive } = request;
  const body = await new Promise<Blob>((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop);
    const read = request.blob().then(resolve, reject);
    void read.finally(() => signal.removeEventListener("abort", stop));
  });
  return new Request(target, { method, redirect, keepalive, signal, ...(body.size > 0 && { body }) });
}

const SAFE_METHOD = /^(?:GET|GETFILE|HEAD|OPTIONS)$/i;
/** Errors after which the provider has certainly not performed the request. */
const NOTHING_DONE = /^(?:RATE_LIMITED|STORE_UNAVAILABLE|REFRESH_UNAVAILABLE)$/;
/** Errors after which the provider may have performed the request. */
const PERHAPS_DONE = /^(?:OVERLOADED|PROVIDER_(?:UNREACHABLE|TIMEOUT|RESPONSE_INVALID)|RELAY_UNREACHABLE)$/;
const BUSY_STATUS: readonly number[] = [502, 503, 504];

/** Drops the header that selects a part of the envelope: this client needs the whole one. */
function callHeaders(headers: NonNullable<CallOptions["headers"]>): object {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !/^x-pinc-response-data-at$/i.test(name)));
}

interface Asked {
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
  /** Repeating the request is harmless. */
  readonly isSafe: boolean;
}

/** Sends one request to the relay and returns the JSON object of its answer. */
async function ask(options: RelayClientOptions, method: string, path: string, asked: Asked): Promise<object> {
  const { privateKey, callToken = privateKey, fetch = globalThis.fetch } = options;
  const { body, signal, isSafe } = asked;
  const init: RequestInit = {
    method,
    headers: {
      ...(callToken !== undefined && { authorization: `Bearer ${callToken}` }),
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    redirect: "error",
  };
  let status = 0;
  try {
    const response = await fetch(options.url + path, init);
    status = response.status;
    const answered: unknown = await response.json();
    // A gateway in front of the relay may answer with a JSON error of its own.
    if (typeof answered === "object" && answered !== null && (response.ok || "rows" in answered)) return answered;
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw unreachable(status, isSafe, cause);
  }
  throw unreachable(status, isSafe);
}

function unreachable(statusCode: number, retryable: boolean, cause?: unknown): RelayCallError {
  const what =
    statusCode === 0
      ? "No relay answers at this URL"
      : `The answer from this URL (status ${statusCode}) is not from a relay`;
  const facts = { errorType: "RELAY_UNREACHABLE", statusCode, callId: undefined, retryable };
  return new RelayCallError(`${what}: check the URL and the network.`, facts, { cause });
}

function answerFrom<Data>(answered: object, isSafe: boolean): CallAnswer<Data> {
  const row = (answered as { rows?: Row[] }).rows?.[0];
  if (row === undefined) throw unreachable(200, isSafe);
  if (row.pincStatus !== "success") throw errorFrom(row, isSafe);
  return {
    status: row.statusCode,
    data: row.data as Data,
    contentType: row.contentType,
    headers: row.headers ?? {},
    dataEncoding: row.dataEncoding,
    possiblyTruncated: row.possiblyTruncated ?? false,
    callId: row.callId ?? "",
  };
}

/** Result of a route other than a call. Throws for an error row. */
function resultFrom<Result>(answered: object): Result {
  const row = (answered as { rows?: Row[] }).rows?.[0];
  if (row !== undefined) throw errorFrom(row, true);
  return answered as Result;
}

function errorFrom(row: Row, isSafe: boolean): RelayCallError {
  const { errorType = "INTERNAL_ERROR", statusCode, inernalError = "The call failed." } = row;
  const isOfProvider = errorType === "API_ERROR";
  const nothingDone = NOTHING_DONE.test(errorType) || (isOfProvider && statusCode === 429);
  const perhapsDone = PERHAPS_DONE.test(errorType) || (isOfProvider && BUSY_STATUS.includes(statusCode));
  const facts = { errorType, statusCode, callId: row.callId, retryable: nothingDone || (isSafe && perhapsDone) };
  const answer = { data: row.data, ...(row.headers && { headers: row.headers }) };
  return new RelayCallError(`${errorType}: ${inernalError}`, { ...facts, ...answer });
}

function privateKeyOf({ privateKey }: RelayClientOptions): string {
  if (privateKey === undefined) throw new TypeError("A call token is created with the private key: set privateKey.");
  return privateKey;
}
