import { cors } from "@connectrpc/connect";
import { corsHeaders, isListed, type ListsOrigin, preflightHeaders } from "../../http/cors.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../../http/exchange.js";

const ALLOWED_HEADERS = [...cors.allowedHeaders, "Authorization", "X-Partner-Key"].join(", ");
const EXPOSED_HEADERS = [...cors.exposedHeaders, "X-Request-Id"].join(", ");

/**
 * CORS for browsers that speak Connect or gRPC-Web. A preflight names no application (the public key is in the
 * message), so an origin that any active application lists passes here; the call itself is then judged by its own
 * application's list. When the store cannot be read nothing is allowed to browsers; the row of a call says why.
 *
 * Returns true when the request was a preflight and is answered.
 */
export async function answeredAsPreflight(
  listsOrigin: ListsOrigin,
  request: HttpRequest,
  response: HttpResponse,
): Promise<boolean> {
  const { origin } = request.headers;
  if (origin === undefined) return false;
  if (request.method !== "OPTIONS") {
    await allowPage(listsOrigin, origin, response);
    return false;
  }
  response.setHeader("vary", "Origin");
  if (!(await isListed(listsOrigin, origin))) {
    answerPlain(response, 403, "No application lists this origin.");
    return true;
  }
  response.writeHead(204, preflightHeaders(origin, { methods: "POST", headers: ALLOWED_HEADERS }));
  response.end();
  return true;
}

/** Lets the scripts of a listed origin read the answer that follows. */
export async function allowPage(listsOrigin: ListsOrigin, origin: string, response: HttpResponse): Promise<void> {
  response.setHeader("vary", "Origin");
  if (!(await isListed(listsOrigin, origin))) return;
  setFields(response, { ...corsHeaders(origin), "access-control-expose-headers": EXPOSED_HEADERS });
}

function setFields(response: HttpResponse, fields: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
}
