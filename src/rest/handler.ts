import type { OutgoingHttpHeaders } from "node:http";
import type { Writable } from "node:stream";
import type { HttpResponse } from "../listener/exchange.js";
import type { PathHandler } from "../listener/router.js";
import type { CallDescription } from "../relay/call.js";
import type { Outcome } from "../relay/outcome.js";
import type { Relay } from "../relay/relay.js";
import { type CallRouteOptions, createCallRoute } from "./call-route.js";
import { type Body, bodyFromOutcome } from "./envelope.js";
import { corsFieldsFor } from "./preflight.js";
import { type Exchange, mustClose, readCall } from "./read-call.js";

/** What the JSON route needs from the rest of the service. */
export interface RestOptions extends CallRouteOptions {
  readonly relay: Relay;
  /** `mirror` makes the HTTP status the row's statusCode instead of 200. */
  readonly httpStatus: "envelope" | "mirror";
}

/** The JSON route: HTTP → relay → HTTP. Every answer on it is an envelope, but 405 and preflights. */
export function createRestHandler(options: RestOptions): PathHandler {
  return createCallRoute(options, (exchange) => answerCall(options, exchange));
}

async function answerCall(options: RestOptions, exchange: Exchange): Promise<void> {
  let dataAt: string | undefined;
  let outcome: Outcome;
  try {
    const call = await readCall(options, exchange);
    dataAt = dataAtFrom(call.description);
    outcome = await options.relay.perform(call);
  } catch (error) {
    outcome = options.relay.refuse(exchange.origin, error);
  }
  const { request, response, queryText } = exchange;
  // Only browsers send it, and only their answers wait for the list.
  const isBrowser = request.headers.origin !== undefined;
  const cors = isBrowser ? await corsFieldsFor(options.allowedOrigins, options.route, request, queryText) : undefined;
  if (!response.destroyed) answerOutcome(options, exchange, outcome, dataAt, cors);
}

function dataAtFrom({ headers }: CallDescription): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === "x-pinc-response-data-at")?.[1].trim();
}

function answerOutcome(
  options: RestOptions,
  { request, response }: Exchange,
  outcome: Outcome,
  dataAt: string | undefined,
  cors: Readonly<Record<string, string>> | undefined,
): void {
  const body = bodyFromOutcome(outcome, dataAt);
  const fields: OutgoingHttpHeaders = {
    "content-type": "application/json",
    "content-length": body.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  if (cors !== undefined) Object.assign(fields, cors);
  if (mustClose(request)) fields.connection = "close";
  response.writeHead(options.httpStatus === "mirror" ? mirroredStatus(outcome) : 200, fields);
  endWith(response, body);
}

/** In one write to the socket. */
function endWith(response: HttpResponse, body: Body): void {
  const out: Writable = response;
  if (typeof body === "string") {
    out.end(body, "latin1");
    return;
  }
  const { pieces } = body;
  if (pieces.length > 1) {
    out.cork();
    for (const piece of pieces.slice(0, -1)) out.write(piece);
  }
  out.end(pieces.at(-1));
}

/** A status that an HTTP response with a body cannot have stays in the row alone. */
function mirroredStatus(outcome: Outcome): number {
  const status = outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode;
  return status < 200 || status > 599 || status === 204 || status === 205 || status === 304 ? 200 : status;
}
