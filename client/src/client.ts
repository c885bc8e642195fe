import { base64From, createCallToken, type NewCallToken } from "./proof.js";

export { type CallRule, createCallToken, type NewCallToken, signUser } from "./proof.js";
export { verifyWebhook, type WebhookEvent } from "./webhook.js";

/** Where the relay is, and who calls. */
export interface RelayClientOptions {
  /** The relay's public address, such as `https://relay.example.com`. */
  readonly url: string;
  /** The application's public key. */
  readonly publicKey: string;
  /** The application's private key: for servers alone, and needed for `token()`, links and signatures. */
  readonly privateKey?: string;
  /** A call token, in place of the private key; it stands for one user. */
  readonly callToken?: string;
  /** Sends the requests; the global `fetch` unless given. */
  readonly fetch?: typeof globalThis.fetch;
}

/** One call, as the JSON route takes it. */
export interface CallOptions {
  /** Absolute https URL on one of the provider's API origins. */
  readonly url: string;
  /** `GET` unless given; the relay's own `FORM`, `MULTIFORM-POST`, `GETFILE` and so on as well. */
  readonly method?: string;
  /** The body as a JSON object; the members of the query for GET and HEAD. */
  readonly payload?: Readonly<Record<string, unknown>>;
  /** The body as exact bytes, in place of `payload`. */
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
  /** Merged into the query of the url. */
  readonly queryString?: Readonly<Record<string, unknown>>;
  /** An array in the query or in a form becomes one pair for each element. */
  readonly explodeArrays?: boolean;
  /** Ends the wait for the answer; the provider may have done what was asked. */
  readonly signal?: AbortSignal;
}

/** The provider's answer to a call, below status 400. */
export interface CallAnswer<Data = unknown> {
  readonly status: number;
  /** Parsed JSON, or text; base64 where `dataEncoding` says so. JSON's numbers beyond 2^53 are rounded by JavaScript. */
  readonly data: Data;
  /** Media type without parameters. */
  readonly contentType: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly dataEncoding: "base64" | "json" | undefined;
  /** Nobody can know whether the end of the body was lost. */
  readonly possiblyTruncated: boolean;
  /** Names the call in the relay's log and records. */
  readonly callId: string;
}

/** A user's connection at one provider, as `connections()` lists it. */
export interface ConnectionSummary {
  readonly providerName: string;
  readonly state: "ACTIVE" | "REAUTHORIZATION_REQUIRED";
  readonly stateReason?: string;
  readonly [member: string]: unknown;
}

/** What a connect link is for. */
export interface ConnectLinkOptions {
  readonly userId: string;
  /** One provider; the page with all of them unless given. */
  readonly provider?: string;
  /** Where the browser comes back to: one of the application's allowed addresses. */
  readonly redirectUri?: string;
}

/** One user's account at one provider. */
export interface Account {
  /** Performs one call with the user's token. @throws RelayCallError for anything but an answer below 400. */
  call<Data = unknown>(call: CallOptions): Promise<CallAnswer<Data>>;
  /**
   * A fetch for this account's provider, to give to an SDK: takes the provider's own URLs, and answers as the provider
   * does, errors and redirects included. Needs the private key or a call token.
   */
  readonly fetch: typeof globalThis.fetch;
  /** Base URL for an SDK that takes one, with a call token as its token. @param host a host of the provider. */
  via(host: string): string;
  /** A call token for this account: 15 minutes, and any request, unless told. Needs the private key. */
  token(limits?: TokenLimits): Promise<string>;
}

type TokenLimits = Pick<NewCallToken, "ttlSeconds" | "rules">;

/** The relay, as one application calls it. */
export interface RelayClient {
  account(userId: string, provider: string): Account;
  /** Address of a page where one browser may connect, once, within 15 minutes. Needs the private key. */
  connectLink(options: ConnectLinkOptions): Promise<{ readonly connectUri: string; readonly expireTime: string }>;
  /** The user's connections, without any token. */
  connections(userId: string): Promise<readonly ConnectionSummary[]>;
  /** Ends a connection, here and, where it can be, at the provider. */
  disconnect(userId: string, provider: string): Promise<{ readonly revocation: string }>;
}

/** What became of a call that has no answer below 400. */
export class RelayCallError extends Error {
  override readonly name = "RelayCallError";
  /** As the relay's documentation lists them; `RELAY_UNREACHABLE` when no answer of a relay came. */
  readonly errorType: string;
  /** The row's; the provider's own for `API_ERROR`; 0 when nothing answered. */
  readonly statusCode: number;
  /** Names the call in the relay's log and records. */
  readonly callId: string | undefined;
  /** Nothing was done, or doing it again does no harm: the same call may be repeated after a while. */
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

/** A row of the envelope. */
interface Row extends Partial<Omit<CallAnswer, "status">> {
  readonly pincStatus: "success" | "error";
  readonly statusCode: number;
  readonly errorType?: string;
  readonly inernalError?: string;
}

/** Creates a client; it opens nothing, and keeps nothing but its options. */
export function createRelayClient(given: RelayClientOptions): RelayClient {
  const options = { ...given, url: new URL(given.url).href.replace(/\/+$/, "") };
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

/**
 * The proof is in `Authorization`, which fetch itself takes out where a redirect leads to another host; so no proof goes
 * anywhere but to the relay.
 */
function createFetch(
  options: RelayClientOptions,
  via: (host: string) => string,
  newToken: () => Promise<string>,
): typeof globalThis.fetch {
  const { callToken, fetch = globalThis.fetch } = options;
  // Another provider's account is not to be reached by a link that this one wrote.
  const ownPlaces = via("");
  return async (input, init) => {
    const isRequest = input instanceof Request;
    const url = new URL(isRequest ? input.url : input);
    url.hash = "";
    // The relay's links to further pages lead through it already.
    const target = url.href.startsWith(ownPlaces) ? url.href : via(url.host) + url.pathname + url.search;
    const headers = new Headers(init?.headers ?? (isRequest ? input.headers : undefined));
    headers.set("authorization", `Bearer ${callToken ?? (await newToken())}`);
    return fetch(isRequest ? new Request(target, input) : target, { ...init, headers });
  };
}

const SAFE_METHOD = /^(?:GET|GETFILE|HEAD|OPTIONS)$/i;
/** The provider did nothing. */
const NOTHING_DONE = /^(?:RATE_LIMITED|STORE_UNAVAILABLE|REFRESH_UNAVAILABLE)$/;
/** The provider may have done what was asked. */
const PERHAPS_DONE = /^(?:OVERLOADED|PROVIDER_(?:UNREACHABLE|TIMEOUT|RESPONSE_INVALID)|RELAY_UNREACHABLE)$/;
const BUSY_STATUS: readonly number[] = [502, 503, 504];

/** The whole envelope is read here, so that no part of it may be asked for. */
function callHeaders(headers: NonNullable<CallOptions["headers"]>): object {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !/^x-pinc-response-data-at$/i.test(name)));
}

interface Asked {
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
  /** Asking again does no harm. */
  readonly isSafe: boolean;
}

/** Sends one request to the relay; the JSON object that it answers with. */
async function ask(options: RelayClientOptions, method: string, path: string, asked: Asked): Promise<object> {
  const { privateKey, callToken = privateKey, fetch = globalThis.fetch } = options;
  const { body, signal, isSafe } = asked;
  let status = 0;
  try {
    const response = await fetch(options.url + path, {
      method,
      headers: {
        ...(callToken !== undefined && { authorization: `Bearer ${callToken}` }),
        ...(body && { "content-type": "application/json" }),
      },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      redirect: "error",
    });
    status = response.status;
    const answered: unknown = await response.json();
    // A gateway in front may have an error in JSON of its own.
    if (typeof answered === "object" && answered !== null && (response.ok || "rows" in answered)) return answered;
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw unreachable(status, isSafe, cause);
  }
  throw unreachable(status, isSafe);
}

function unreachable(statusCode: number, retryable: boolean, cause?: unknown): RelayCallError {
  const what = statusCode === 0 ? "No relay answers there" : `What answers there (${statusCode}) is not a relay`;
  const facts = { errorType: "RELAY_UNREACHABLE", statusCode, callId: undefined, retryable };
  return new RelayCallError(`${what}: check the url and the network.`, facts, { cause });
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

/** What a route other than a call answers: its result, or an error row. */
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
  if (privateKey === undefined) throw new TypeError("A call token is made from the private key: set privateKey.");
  return privateKey;
}
