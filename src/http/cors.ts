import { answerPlain, type HttpRequest, type HttpResponse } from "./exchange.js";

/** Whether any active application lists this browser origin. Rejects when the list cannot be read. */
export type ListsOrigin = (origin: string) => Promise<boolean>;

/** The same, for a preflight or an answer: false when the store cannot be read. */
export function isListed(listsOrigin: ListsOrigin, origin: string): Promise<boolean> {
  return listsOrigin(origin).catch(() => false);
}

/** What to allow in the answer to a preflight. */
export interface AllowedRequest {
  readonly methods: string;
  /** Header names to allow when those that the preflight requests are missing or malformed. */
  readonly headers: string;
}

/**
 * Answers a preflight (Fetch standard, CORS-preflight) where nothing names an application: any application that lists
 * the origin is enough. The request itself is judged by its own application's list.
 */
export async function answerOriginPreflight(
  { listsOrigin }: { readonly listsOrigin: ListsOrigin },
  request: HttpRequest,
  response: HttpResponse,
  allowed: AllowedRequest,
): Promise<void> {
  const { origin = "" } = request.headers;
  if (await isListed(listsOrigin, origin)) return allowPreflight(request, response, origin, allowed);
  answerPlain(response, 403, "No application lists this origin.", { vary: "Origin" });
}

/** Allows the header names that a preflight asks for: the relay judges what it forwards anyway. */
export function allowPreflight(
  request: HttpRequest,
  response: HttpResponse,
  origin: string,
  { methods, headers }: AllowedRequest,
): void {
  const asked = request.headers["access-control-request-headers"];
  response.writeHead(204, {
    vary: "Origin",
    ...allowing(origin),
    "access-control-allow-methods": methods,
    "access-control-allow-headers": typeof asked === "string" && /^[\w, -]{1,2048}$/.test(asked) ? asked : headers,
    "access-control-max-age": "600",
  });
  response.end();
}

function allowing(origin: string): Record<string, string> {
  return { "access-control-allow-origin": origin, "access-control-allow-credentials": "true" };
}

/**
 * Fields of an answer to a browser at `origin`.
 *
 * @param isAllowed whether its scripts may read the answer.
 * @param exposed names of the fields that they may read besides the usual ones.
 */
export function corsFieldsAt(origin: string, isAllowed: boolean, exposed = "x-request-id"): Record<string, string> {
  if (!isAllowed) return { vary: "Origin" };
  return { vary: "Origin", ...allowing(origin), "access-control-expose-headers": exposed };
}

/**
 * The same where nothing names an application; undefined when the client is not a browser. Any application that lists
 * the origin is enough: the call is performed only for an origin on its own application's list, and a page must be able
 * to read why it was refused.
 */
export async function corsFieldsIfListed(
  { listsOrigin }: { readonly listsOrigin: ListsOrigin },
  { headers: { origin } }: HttpRequest,
  exposed?: string,
): Promise<Record<string, string> | undefined> {
  return origin === undefined ? undefined : corsFieldsAt(origin, await isListed(listsOrigin, origin), exposed);
}
