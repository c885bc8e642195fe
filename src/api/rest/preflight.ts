import { callerFieldsOf, callerFrom } from "../../applications/caller.js";
import { allowPreflight, corsFieldsAt, isListed, type ListsOrigin } from "../../http/cors.js";
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
      : await lists(allowedOrigins, publicKey ?? "", origin);
  if (origin === undefined || !isAllowed) {
    answerPlain(response, 403, "This origin is not on the application's list of allowed origins.", { vary: "Origin" });
    return;
  }
  allowPreflight(request, response, origin, { methods: route.method, headers: "content-type" });
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
  return corsFieldsAt(origin, await lists(allowedOrigins, publicKey, origin), "retry-after, x-request-id");
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

/**
 * Whether an application lists the origin, which is compared exactly (RFC 6454). When the store cannot be read, none
 * does; the row of the call itself says why.
 */
async function lists(allowedOrigins: AllowedOrigins, publicKey: string, origin: string | undefined): Promise<boolean> {
  try {
    return origin !== undefined && publicKey !== "" && (await allowedOrigins(publicKey)).includes(origin);
  } catch {
    return false;
  }
}
