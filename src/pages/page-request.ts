import { randomBytes } from "node:crypto";
import { type HttpRequest, type HttpResponse, readBody, watchCaller } from "../http/exchange.js";
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
import { MAX_SECRET_LENGTH } from "../providers/connection-value.js";
import type { Texts } from "./texts/texts.js";

/** One request from a browser. */
export interface PageExchange {
  readonly options: AuthorizationOptions;
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  /** The query, without the question mark. */
  readonly queryText: string;
  readonly address: string;
  /** Texts in the browser's language. */
  readonly texts: Texts;
  /** Value of the browser's cookie. */
  readonly browser: string;
  /** `Set-Cookie` value to send; undefined when the browser already has the cookie. */
  readonly cookie: string | undefined;
}

/**
 * Finds the connect session of a browser by what its address carries: the session of an open page, a connect link, or
 * the proof of a call.
 *
 * @param isPage whether an address with a proof opens the connect page, not the flow for one provider.
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

/** Throws RelayError CALLER_NOT_ALLOWED when the session is only for connecting one provider, without the page. */
export function requirePage({ isPage }: Pick<ConnectSession, "isPage">): void {
  if (isPage) return;
  throw new RelayError("CALLER_NOT_ALLOWED", "This address is for connecting one provider only. Start again.");
}

/** Throws RelayError CALLER_NOT_ALLOWED when the session is for other providers. */
export function requireListed({ providers }: Pick<ConnectSession, "providers">, name: string): void {
  if (providers.length === 0 || providers.includes(name)) return;
  throw new RelayError("CALLER_NOT_ALLOWED", "This page was not opened for this provider. Start again.");
}

/** Identifies the browser by its cookie, or creates a cookie for it. */
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

/** 256 random bits, which carry no information. */
const VALUE = /^[A-Za-z0-9_-]{43}$/;

/**
 * Reads and writes the cookie that identifies a browser. Over https it has the `__Host-` prefix, so that neither a
 * sibling domain nor plain http can set it (RFC 6265bis section 4.1.3). SameSite is Lax, since the provider's redirect
 * to the callback comes from another site.
 */
export function createBrowserCookie(isSecure: boolean) {
  const name = isSecure ? "__Host-relay-browser" : "relay-browser";
  return {
    /** The browser's value; undefined when it has none or an invalid one. */
    read(cookieHeader = ""): string | undefined {
      const values = cookieHeader
        .split(";")
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${name}=`))
        .map((pair) => pair.slice(name.length + 1));
      // Two cookies of this name: somebody else has set one of them.
      const [value = ""] = values.length === 1 ? values : [];
      return VALUE.test(value) ? value : undefined;
    },
    /** Value of the `Set-Cookie` field. */
    write: (value: string) => `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`,
  };
}

/** Size limit of a form: far above the connect page's own form. */
const MAX_FORM_BYTES = 32 * 1024;
/** Size limit of a form with keys: two of maximum length and the rest. Percent-encoded, a character takes 9 bytes at most. */
export const MAX_KEYS_FORM_BYTES = MAX_FORM_BYTES + 2 * 9 * MAX_SECRET_LENGTH;

/** Forms are small, so their memory is not counted. */
const UNCOUNTED = { reserve: () => true, release() {}, whenEvicted() {} };

/**
 * Reads a urlencoded form. Rejects with RelayError REQUEST_TOO_LARGE, or CALL_FORMAT_ERROR when the body is not a form or
 * is truncated.
 */
export async function readForm({ request, response }: PageExchange, maxBytes = MAX_FORM_BYTES): Promise<string> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? ""))
    throw formatError("The request is not a form. Use the page's own buttons.");
  return (await readBody(request, maxBytes, UNCOUNTED, watchCaller(response, UNCOUNTED))).concat().toString();
}

const MAX_VALUE_LENGTH = 4096;

/** Parameters of a page's address or form; each may occur once. */
export interface PageQuery {
  /** Undefined when missing or empty. Throws RelayError CALL_FORMAT_ERROR when repeated, too long or not UTF-8. */
  get(name: string): string | undefined;
  /** Those of `names` that are present. */
  pick(names: readonly string[]): ReadonlyMap<string, string>;
}

/**
 * Parses a query or a form. A private key in it is refused: it would end up in the browser's history and in every log
 * on the way.
 * Throws RelayError CALL_FORMAT_ERROR or CALLER_NOT_ALLOWED.
 *
 * @param maxLength of a value, in characters.
 */
export function parsePageQuery(text: string, maxLength: number = MAX_VALUE_LENGTH): PageQuery {
  // The charset of raw non-ASCII bytes is unknown.
  if (/[^\x21-\x7e]/.test(text)) throw formatError("The address holds characters that must be percent-encoded.");
  const parameters = new URLSearchParams(text);
  if (parameters.getAll("private_key").some((value) => value !== "")) throw privateKeyShown();
  const get = (name: string): string | undefined => {
    const values = parameters.getAll(name);
    if (values.length > 1) throw formatError(`${name} is given more than once. Send it once.`);
    const [value = ""] = values;
    // URLSearchParams decodes invalid UTF-8 to U+FFFD, so that two different ids could become the same.
    if (value.includes("\ufffd")) throw formatError(`${name} is not correctly percent-encoded. Encode it as UTF-8.`);
    if (value.length > maxLength) throw formatError(`${name} is longer than ${maxLength} characters.`);
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

/** The session parameters in an address that an application built. Throws RelayError CALL_FORMAT_ERROR. */
export function connectSessionQueryFrom(query: PageQuery, address: string, isPage: boolean): ConnectSessionQuery {
  return {
    publicKey: query.get("public_key") ?? "",
    userId: query.get("user_id") ?? "",
    // A browser that navigates here sends no origin.
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
