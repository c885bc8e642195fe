import type { Answer } from "./answer.js";
import type { Authorization } from "./bearer.js";
import { decideAuthorization } from "./bearer.js";
import { createOAuthRoutes } from "./oauth-routes.js";
import type { OAuthServer } from "./oauth-server.js";
import type { RequestLog } from "./request-log.js";
import { createResourceRoutes } from "./resource-routes.js";
import { callRoute, createRouter, parseTarget } from "./router.js";
import type { SandboxRequestFields } from "./sandbox-request.js";
import { SandboxRequest } from "./sandbox-request.js";

/** Notes a request in the log and decides its answer. Throws what a handler throws. */
export type Respond = (fields: Omit<SandboxRequestFields, "authorized">) => Answer | Promise<Answer>;

/** Puts the authorization server and the resource API behind one function. */
export function createRespond(origin: string, server: OAuthServer, log: RequestLog): Respond {
  const findOAuthRoute = createRouter(createOAuthRoutes(server));
  const findResourceRoute = createRouter(createResourceRoutes(origin));
  return (fields) => {
    const authorization = decideAuthorization(fields.rawHeaders, server.grants.findAccount);
    const received = new SandboxRequest({ ...fields, authorized: authorization.result === "authorized" });
    log.add(received);
    const routed = { received, ...parseTarget(fields.target) };
    const oauthRoute = findOAuthRoute(routed.path);
    if (oauthRoute !== undefined) return callRoute(oauthRoute, routed);
    if (authorization.result === "refused") return authorization.answer;
    return callRoute(findResourceRoute(routed.path), { ...routed, ...withoutResult(authorization) });
  };
}

function withoutResult({ accessToken, account }: Authorization & { result: "authorized" }) {
  return { accessToken, account };
}
