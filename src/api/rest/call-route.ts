import type { PathHandler } from "../../http/dispatch.js";
import { answerPlain } from "../../http/exchange.js";
import { type AllowedOrigins, answerPreflight } from "./preflight.js";
import { type CallReaderOptions, type Exchange, originOf } from "./read-call.js";

/** What a route that takes calls needs from the rest of the service. */
export interface CallRouteOptions extends CallReaderOptions {
  readonly allowedOrigins: AllowedOrigins;
}

/** Gives the calls on a route to `answer`; preflights and methods that the route does not have are answered here. */
export function createCallRoute(options: CallRouteOptions, answer: (exchange: Exchange) => Promise<void>): PathHandler {
  const { route, allowedOrigins } = options;
  return (request, response, path) => {
    const variables = route.match(path);
    if (variables === undefined) return undefined;
    const queryText = (request.url ?? "").slice(path.length + 1);
    if (request.method === route.method) {
      return answer({ request, response, origin: originOf(options, request, variables[0] ?? ""), queryText });
    }
    if (request.method === "OPTIONS") return answerPreflight(allowedOrigins, route, request, response, queryText);
    answerPlain(response, 405, `Send a ${route.method} request.`, { allow: `${route.method}, OPTIONS` });
    return Promise.resolve();
  };
}
