import { randomBytes } from "node:crypto";
import { type HttpRequest, type HttpResponse, mustClose, readBody, watchCaller } from "../http/exchange.js";
import { formatError, RelayError } from "../model/errors.js";
import type { AuthorizationOptions } from "../oauth/authorization-server.js";
import {
  type ConnectSession,
  type ConnectSessionQuery,
  connectSessionFromLink,
  connectSessionFromQuery,
  connectSessionFromSecret,
  MAX_PROVIDERS,
} from "../oauth/connect-session.js";
import type { Texts } from "./texts/texts.js";

/** One request of a browser. */
export interface PageExchange {
  readonly options: AuthorizationOptions;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** What stands behind the question mark. */
  readonly queryText: string;
  readonly address: string;
  /** In the language that the browser asks for. */
  readonly texts: Texts;
  /** The browser's cookie. */
  readonly browser: string;
  /** The field that gives it to the browser; undefined when the browser has it. */
  readonly cookie: string | undefined;
}

/**
 * Whose browser this is, by what its address carries: an open page's session, a link, or the proof of a call.
 *
 * @param isPage whether an address with a proof opens the connect page.
 */
export async function connectSessionFor(
  exchange: PageExchange,
  query: PageQuery,
  isPage: boolean,
): Promise<ConnectSession> {
  const { options, browser, address } = exchange;
  const session = query.get("session");
  if (session !== undefined) return connectSessionFromSecret(options, session, browser);
  const link = query.get("link");
  if (link !== undefined) return connectSessionFromLink(options, link, query.get("opener_origin"), browser);
  return connectSessionFromQuery(options, connectSessionQueryFrom(query, address, isPage), browser);
}

/** Throws RelayError CALLER_NOT_ALLOWED when the session is for connecting one provider, without the page. */
export function requirePage({ isPage }: Pick<ConnectSession, "isPage">): void {
  if (isPage) return;
  throw new RelayError("CALLER_NOT_ALLOWED", "This address is for connecting one provider only. Start again.");
}

/** Throws RelayError CALLER_NOT_ALLOWED when the session is for other providers. */
export function requireListed({ providers }: Pick<ConnectSession, "providers">, name: string): void {
  if (providers.length === 0 || providers.includes(name)) return;
  throw new RelayError("CALLER_NOT_ALLOWED", "This page was not opened for this provider. Start again.");
}

/** Whose browser sends a request, and the cookie for one that has none. */
export function browserOf(
  { publicUrl }: AuthorizationOptions,
  request: HttpRequest,
): Pick<PageExchange, "browser" | "cookie"> {
  const cookie = createBrowserCookie(publicUrl()?.startsWith("https:") ?? false);
  const known = cookie.read(request.headers.cookie);
  if (known !== undefined) return { browser: known, cookie: undefined };
  const browser = randomBytes(32).toString("base64url");
  return { browser, cookie: cookie.write(browser) };
}

/** The cookie that tells one browser from another: 256 random bits, which stand for nothing by themselves. */
interface BrowserCookie {
  /** The browser's value; undefined when it has none that counts. */
  read(cookieHeader: string | undefined): string | undefined;
  /** The `Set-Cookie` field that gives it one. */
  write(value: string): string;
}

const VALUE = /^[A-Za-z0-9_-]{43}$/;

/**
 * Creates the cookie's use. Over https it is one that neither a sibling domain nor plain http can set (RFC 6265bis
 * section 4.1.3). SameSite is Lax, since the provider's redirect to the callback comes from another site.
 */
export function createBrowserCookie(isSecure: boolean): BrowserCookie {
  const name = isSecure ? "__Host-relay-browser" : "relay-browser";
  return {
    read(cookieHeader = "") {
      const values = cookieHeader
        .split(";")
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${name}=`))
        .map((pair) => pair.slice(name.length + 1));
      // Two of them: somebody else has set one.
      const [value = ""] = values.length === 1 ? values : [];
      return VALUE.test(value) ? value : undefined;
    },
    write: (value) => `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`,
  };
}

/** Of the connect page's form, many times over, and of a form with some keys of the greatest length. */
const MAX_FORM_BYTES = 32 * 1024;

/** Forms are small: what they hold is not counted. */
const UNCOUNTED = { reserve: () => true, release() {}, whenEvicted() {} };

/** Reads a urlencoded form. Rejects with RelayError REQUEST_TOO_LARGE, or CALL_FORMAT_ERROR when it is none or cut short. */
export async function readForm({ request, response }: PageExchange): Promise<string> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? ""))
    throw formatError("The request is not a form. Use the page's own buttons.");
  try {
    const body = await readBody(request, MAX_FORM_BYTES, UNCOUNTED, watchCaller(response, UNCOUNTED));
    return body.concat().toString();
  } finally {
    if (mustClose(request)) response.setHeader("connection", "close");
  }
}

const MAX_VALUE_LENGTH = 4096;

/** Parameters of a page's address or form, each at most once. */
export interface PageQuery {
  /** Undefined when it is missing or empty. Throws RelayError CALL_FORMAT_ERROR when it stands twice, is too long or no UTF-8. */
  get(name: string): string | undefined;
  /** Those among `names` that are there. */
  pick(names: readonly string[]): ReadonlyMap<string, string>;
}

/**
 * Reads a query or a form. A private key in it is refused: a browser's history and every log on the way would have it.
 * Throws RelayError CALL_FORMAT_ERROR or CALLER_NOT_ALLOWED.
 */
export function parsePageQuery(text: string): PageQuery {
  // Whatever a client sends as bytes that are no ASCII, nobody knows in which charset.
  if (/[^\x21-\x7e]/.test(text)) throw formatError("The address holds characters that must be percent-encoded.");
  const parameters = new URLSearchParams(text);
  if (parameters.getAll("private_key").some((value) => value !== "")) throw privateKeyShown();
  const get = (name: string): string | undefined => {
    const values = parameters.getAll(name);
    if (values.length > 1) throw formatError(`${name} is given more than once. Send it once.`);
    const [value = ""] = values;
    // What bytes that are no UTF-8 become: two different ids would be the same.
    if (value.includes("\ufffd")) throw formatError(`${name} is not correctly percent-encoded. Encode it as UTF-8.`);
    if (value.length > MAX_VALUE_LENGTH) throw formatError(`${name} is longer than ${MAX_VALUE_LENGTH} characters.`);
    return value === "" ? undefined : value;
  };
  return {
    get,
    pick: (names) =>
      new Map(
        names.flatMap((name) => {
          const value = get(name);
          return value === undefined ? [] : [[name, value] as const];
        }),
      ),
  };
}

/** What an application's own address says of the session. Throws RelayError CALL_FORMAT_ERROR. */
export function connectSessionQueryFrom(query: PageQuery, address: string, isPage: boolean): ConnectSessionQuery {
  return {
    publicKey: query.get("public_key") ?? "",
    userId: query.get("user_id") ?? "",
    // A browser that is sent here names no origin; one that does is not what this page is for.
    proof: {
      privateKeys: [],
      callToken: undefined,
      userSignature: query.get("user_signature"),
      origin: undefined,
      address,
    },
    providers: providersFrom(query.get("providers")),
    redirectUri: query.get("redirect_uri"),
    openerOrigin: query.get("opener_origin"),
    scope: query.get("scope"),
    isPage,
  };
}

function providersFrom(text = ""): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.length > MAX_PROVIDERS) throw formatError(`providers lists more than ${MAX_PROVIDERS} providers.`);
  return names.filter((name) => name !== "");
}

function privateKeyShown(): RelayError {
  return new RelayError(
    "CALLER_NOT_ALLOWED",
    "A private key must not be in a browser. Make a connect link with it (POST /oauth/connect-links) and send the browser there.",
  );
}
