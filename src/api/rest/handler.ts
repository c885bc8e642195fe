import type { Call, CallDescription } from "../../call/call.js";
import { isGone, type Outcome, statusCodeOf } from "../../call/outcome.js";
import type { Performed, Relay } from "../../call/relay.js";
import type { PathHandler } from "../../http/dispatch.js";
import { answerPlain, endWith, hasContent, jsonFields } from "../../http/exchange.js";
import { findHeader } from "../../providers/credential.js";
import { type Body, bodyFromOutcome, largeBodyOf } from "./envelope.js";
import { answerPreflight, type BrowserOrigins, corsFieldsFor } from "./preflight.js";
import { type CallReaderOptions, type Exchange, originOf, readCall } from "./read-call.js";

/** What the JSON route needs from the rest of the service. */
interface RestOptions extends CallRouteOptions {
  readonly relay: Relay;
  /** `mirror` makes the HTTP status the row's statusCode instead of 200. */
  readonly httpStatus: "envelope" | "mirror";
}

/** The JSON route: HTTP → relay → HTTP. Every answer on it is an envelope, except 405 and preflights. */
export function createRestHandler(options: RestOptions): PathHandler {
  return createCallRoute(options, (exchange) => answerCall(options, exchange));
}

async function answerCall(options: RestOptions, exchange: Exchange): Promise<void> {
  let call: Call | undefined;
  let dataAt: string | undefined;
  let performed: Performed<Body>;
  try {
    call = await readCall(options, exchange);
    dataAt = dataAtFrom(call.description);
    performed = await options.relay.perform(call, (outcome) => largeBodyOf(outcome, dataAt));
  } catch (error) {
    performed = { outcome: options.relay.refuse(exchange.origin, error), large: undefined };
  }
  const { request, response, queryText } = exchange;
  const { outcome, large } = performed;
  // Only browsers send Origin, so only their answers wait for the lookup of the list.
  const isBrowser = request.headers.origin !== undefined;
  const cors = isBrowser ? await corsFieldsFor(options.allowedOrigins, options.route, request, queryText) : undefined;
  if (response.destroyed || isGone(call?.signal)) return;
  answerOutcome(options, exchange, large ?? bodyFromOutcome(outcome, dataAt), outcome, cors);
}

function dataAtFrom({ headers }: CallDescription): string | undefined {
  return findHeader(headers, "x-pinc-response-data-at")?.[1].trim();
}

function answerOutcome(
  options: RestOptions,
  { response }: Exchange,
  body: Body,
  outcome: Outcome,
  cors: Readonly<Record<string, string>> | undefined,
): void {
  const isMirror = options.httpStatus === "mirror";
  const fields = jsonFields(body.length, isMirror && outcome.result === "error" ? outcome.waitSeconds : undefined);
  if (cors !== undefined) Object.assign(fields, cors);
  response.writeHead(isMirror ? mirroredStatus(outcome) : 200, fields);
  if (typeof body === "string") response.end(body, "latin1");
  else endWith(response, body.pieces);
}

/** The row's status, or 200 when an answer with a body cannot have that status. */
function mirroredStatus(outcome: Outcome): number {
  const status = statusCodeOf(outcome);
  return hasContent(status) ? status : 200;
}

/** What a route that takes calls needs from the rest of the service. */
export interface CallRouteOptions extends CallReaderOptions, BrowserOrigins {}

/** Passes the calls on a route to `answer`; answers preflights and other methods itself. */
export function createCallRoute(options: CallRouteOptions, answer: (exchange: Exchange) => Promise<void>): PathHandler {
  const { route } = options;
  return (request, response, path) => {
    const variables = route.match(path);
    if (variables === undefined) return undefined;
    const queryText = (request.url ?? "").slice(path.length + 1);
    if (request.method === route.method) {
      return answer({ request, response, origin: originOf(options, request, variables[0] ?? ""), queryText });
    }
    if (request.method === "OPTIONS") return answerPreflight(options, route, request, response, queryText);
    answerPlain(response, 405, `Send a ${route.method} request.`, { allow: `${route.method}, OPTIONS` });
    return Promise.resolve();
  };
}
