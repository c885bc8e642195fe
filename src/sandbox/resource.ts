import { type Answer, errorAnswer } from "./answer.js";
import type { Account } from "./grants.js";
import { fieldValues } from "./parameters.js";
import type { Handler, Route, RoutedRequest } from "./router.js";

/** A request to the resource API; its token has been judged. */
export interface ResourceRequest extends RoutedRequest {
  readonly accessToken: string;
  readonly account: Account;
}

/** Decides the answer of one resource. */
type ResourceHandler = Handler<ResourceRequest>;

/** One line of the resource API's route table. */
export type ResourceRoute = Route<ResourceRequest>;

/** A resource that is only read. */
export function getRoute(path: string, handle: ResourceHandler): ResourceRoute {
  return { path, methods: ["GET"], handle };
}

/** A resource that takes every method. */
export function anyRoute(path: string, handle: ResourceHandler): ResourceRoute {
  return { path, methods: "ANY", handle };
}

/** Whether a request may use the resource API, and as whom. */
export type Authorization =
  | { readonly result: "authorized"; readonly accessToken: string; readonly account: Account }
  | { readonly result: "refused"; readonly answer: Answer };

/** Judges the Authorization field of a request: exactly one, `Bearer`, with a valid access token (RFC 6750 section 2.1). */
export function decideAuthorization(
  rawHeaders: readonly string[],
  findAccount: (accessToken: string) => Account | undefined,
): Authorization {
  const values = fieldValues(rawHeaders, "authorization");
  if (values.length > 1) return refused(400, "invalid_request", "More than one Authorization field.");
  const accessToken = /^Bearer +(.+)$/i.exec(values[0] ?? "")?.[1];
  const account = accessToken === undefined ? undefined : findAccount(accessToken);
  if (accessToken !== undefined && account !== undefined) return { result: "authorized", accessToken, account };
  // https://www.rfc-editor.org/rfc/rfc6750#section-3.1: no error code in the challenge when nothing was presented.
  if (values.length === 0) return refused(401, undefined, "This resource takes an access token.");
  return refused(401, "invalid_token", "The access token is unknown, expired or revoked.");
}

function refused(statusCode: number, error: string | undefined, description: string): Authorization {
  const challenge = error === undefined ? 'Bearer realm="sandbox"' : `Bearer realm="sandbox", error="${error}"`;
  const answer = errorAnswer(statusCode, error ?? "unauthorized", description, ["WWW-Authenticate", challenge]);
  return { result: "refused", answer };
}
