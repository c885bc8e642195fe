import { callerFieldsOf, callerFrom } from "../../applications/caller.js";
import { corsHeaders, decideCors, isListed, type ListsOrigin, preflightHeaders } from "../../http/cors.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../../http/exchange.js";
import { namedKeysOf, parseCallQuery, type Route } from "./read-call.js";

/** Browser origins on the list of the application with this public key; none when there is no such application. */
export type AllowedOrigins = (publicKey: string) => Promise<readonly string[]>;

/** Lookups of allowed browser origins: of one application, and of all. */
export interface BrowserOrigins {
  readonly allowedOrigins: AllowedOrigins;
  readonly listsOrigin: ListsOrigin;
}

/**
 * Answers a preflight (Fetch standard, CORS-preflight). The list of the application that the query names decides. The
 * query of a call with a call token names none, and a preflight has no token: then any application that lists the
 * origin is enough. The call itself is judged by its own application's list.
 */
export async function answerPreflight(
  { allowedOrigins, listsOrigin }: BrowserOrigins,
  route: Route,
  request: HttpRequest,
  response: HttpResponse,
  queryText: string,
): Promise<void> {
  const { origin } = request.headers;
  const publicKey = publicKeyOf(request, route, queryText);
  const isAllowed =
    publicKey === "" && origin !== undefined && mayNameNone(route)
      ? await isListed(listsOrigin, origin)
      : decideCors(origin, await originsOrNone(allowedOrigins, publicKey ?? ""));
  if (origin === undefined || !isAllowed) {
    answerPlain(response, 403, "This origin is not on the application's list of allowed origins.", { vary: "Origin" });
    return;
  }
  allowPreflight(request, response, origin, { methods: route.method, headers: "content-type" });
}

/** What to allow in the answer to a preflight. */
interface AllowedRequest {
  readonly methods: string;
  /** Header names to allow when those that the preflight requests are missing or malformed. */
  readonly headers: string;
}

/**
 * The same where nothing names an application: any application that lists the origin is enough. The request itself is
 * judged by its own application's list.
 */
export async function answerOriginPreflight(
  { listsOrigin }: Pick<BrowserOrigins, "listsOrigin">,
  request: HttpRequest,
  response: HttpResponse,
  allowed: AllowedRequest,
): Promise<void> {
  const { origin = "" } = request.headers;
  if (await isListed(listsOrigin, origin)) return allowPreflight(request, response, origin, allowed);
  answerPlain(response, 403, "No application lists this origin.", { vary: "Origin" });
}

/** Allows the header names that a preflight asks for. */
function allowPreflight(
  request: HttpRequest,
  response: HttpResponse,
  origin: string,
  { methods, headers }: AllowedRequest,
): void {
  const asked = request.headers["access-control-request-headers"];
  const allowed = typeof asked === "string" && /^[\w, -]{1,2048}$/.test(asked) ? asked : headers;
  response.writeHead(204, { vary: "Origin", ...preflightHeaders(origin, { methods, headers: allowed }) });
  response.end();
}

/** CORS fields of a call's own answer. */
export async function corsFieldsFor(
  allowedOrigins: AllowedOrigins,
  route: Route,
  request: HttpRequest,
  queryText: string,
): Promise<Record<string, string> | undefined> {
  const { origin } = request.headers;
  if (origin === undefined) return undefined;
  const publicKey = publicKeyOf(request, route, queryText) ?? onlyPublicKeyIn(queryText);
  return corsFieldsAt(origin, decideCors(origin, await originsOrNone(allowedOrigins, publicKey)));
}

/**
 * CORS fields of an answer; undefined when the client is not a browser. As for Connect, any application that lists the
 * origin is enough: the call is performed only for an origin on its own application's list, and a page must be able to
 * read why it was refused.
 */
export async function corsFieldsIfListed(
  { listsOrigin }: Pick<BrowserOrigins, "listsOrigin">,
  { headers: { origin } }: HttpRequest,
): Promise<Record<string, string> | undefined> {
  return origin === undefined ? undefined : corsFieldsAt(origin, await isListed(listsOrigin, origin));
}

/** CORS fields for a browser at `origin`. */
function corsFieldsAt(origin: string, isAllowed: boolean): Record<string, string> {
  if (!isAllowed) return { vary: "Origin" };
  return { vary: "Origin", ...corsHeaders(origin), "access-control-expose-headers": "x-request-id" };
}

/**
 * Whether a call token may stand in for the public key: for calls and for reading. It cannot create a connect link,
 * whose body names the application, and cannot delete anything.
 */
function mayNameNone({ method, queryFields }: Route): boolean {
  return queryFields.has("public_key") && method !== "DELETE";
}

/** Public key of the application whose list decides; undefined when the query is malformed. */
function publicKeyOf(request: HttpRequest, route: Route, queryText: string): string | undefined {
  try {
    const named = namedKeysOf(parseCallQuery(queryText, route.queryFields));
    return callerFrom(callerFieldsOf(request, ""), named).publicKey;
  } catch {
    return undefined;
  }
}

/** The public key in a malformed query: its page must be able to read the row that says what is wrong. */
function onlyPublicKeyIn(queryText: string): string {
  const keys = new URLSearchParams(queryText).getAll("public_key");
  return keys.length === 1 ? (keys[0] ?? "") : "";
}

/** When the store cannot be read, no origin is allowed; the row of the call itself says why. */
async function originsOrNone(allowedOrigins: AllowedOrigins, publicKey: string): Promise<readonly string[]> {
  try {
    return publicKey === "" ? [] : await allowedOrigins(publicKey);
  } catch {
    return [];
  }
}
