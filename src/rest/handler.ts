import type { OutgoingHttpHeaders } from "node:http";
import { formatError } from "../errors.js";
import { answerPlain, type HttpRequest, type HttpResponse } from "../listener/exchange.js";
import type { PathHandler } from "../listener/router.js";
import { type Budget, overloaded, type Reservation } from "../relay/budget.js";
import type { Call, CallDescription, CallOrigin, ResponseMode } from "../relay/call.js";
import type { Outcome } from "../relay/outcome.js";
import type { Relay } from "../relay/relay.js";
import { callerKeysOf } from "./caller.js";
import { descriptionFromBody, descriptionFromDotted } from "./description.js";
import { bodyFromOutcome } from "./envelope.js";
import { type AllowedOrigins, answerPreflight, corsFieldsFor } from "./preflight.js";
import { type CallQuery, parseCallQuery } from "./query.js";
import { readBody } from "./read-body.js";
import { ResponseSignal } from "./response-signal.js";
import type { Route } from "./route.js";

/** What the JSON route needs from the rest of the service. */
export interface RestOptions {
  readonly route: Route;
  readonly relay: Relay;
  readonly budget: Budget;
  readonly allowedOrigins: AllowedOrigins;
  readonly clientAddress: (request: HttpRequest) => string;
  readonly newCallId: () => string;
  readonly maxRequestBytes: number;
  readonly deadlineMs: number;
  /** `mirror` makes the HTTP status the row's statusCode instead of 200. */
  readonly httpStatus: "envelope" | "mirror";
}

/** One request on its way through the route. */
interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly origin: CallOrigin;
  /** What stands behind the question mark. */
  readonly queryText: string;
}

/** The JSON route: HTTP → relay → HTTP. Every answer on it is an envelope, but 405 and preflights. */
export function createRestHandler(options: RestOptions): PathHandler {
  return (request, response, path) => {
    const variables = options.route.match(path);
    if (variables === undefined) return undefined;
    const queryText = (request.url ?? "").slice(path.length + 1);
    if (request.method === options.route.method) {
      return answerCall(options, { request, response, origin: originOf(options, variables[0] ?? ""), queryText });
    }
    if (request.method === "OPTIONS") {
      return answerPreflight(options.allowedOrigins, options.route, request, response, queryText);
    }
    return answerMethodNotAllowed(options.route, response);
  };
}

async function answerMethodNotAllowed(route: Route, response: HttpResponse): Promise<void> {
  answerPlain(response, 405, `Send a ${route.method} request.`, { allow: `${route.method}, OPTIONS` });
}

function originOf(options: RestOptions, rawProviderName: string): CallOrigin {
  return {
    callId: options.newCallId(),
    surface: "rest",
    startedAt: performance.now(),
    providerName: providerNameFrom(rawProviderName),
  };
}

/** A name that is not percent-encoded correctly is no provider's name: kept as it is, nothing matches it. */
function providerNameFrom(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    return raw;
  }
}

async function answerCall(options: RestOptions, exchange: Exchange): Promise<void> {
  const { request, origin, queryText } = exchange;
  let dataAt: string | undefined;
  let outcome: Outcome;
  try {
    const { memory, signal } = openCall(options.budget, exchange.response);
    requirePlainBody(request);
    const query = parseCallQuery(queryText, options.route.queryFields);
    const body = await readBody(request, options.maxRequestBytes, memory);
    if (!memory.begin()) throw overloaded();
    const description = descriptionFrom(body, query);
    dataAt = description.headers.find(([name]) => name.toLowerCase() === "x-pinc-response-data-at")?.[1].trim();
    outcome = await options.relay.perform(callFrom(options, exchange, query, description, memory, signal));
  } catch (error) {
    outcome = options.relay.refuse(origin, error);
  }
  await answerOutcome(options, exchange, outcome, dataAt);
}

/** The call's share of the memory budget, given back when its answer has left or its caller has, which aborts it. */
function openCall(budget: Budget, response: HttpResponse): { memory: Reservation; signal: ResponseSignal } {
  const memory = budget.open();
  const signal = new ResponseSignal(response);
  response.on("close", () => {
    memory.release();
    signal.onClose();
  });
  return { memory, signal };
}

/** Named, since a compressed body would otherwise only be called no UTF-8. Other values are no coding of bytes. */
function requirePlainBody({ headers }: HttpRequest): void {
  if (!/\b(?:gzip|compress|deflate|br|zstd)\b/i.test(headers["content-encoding"] ?? "")) return;
  throw formatError("The content-encoding of the request is not supported. Send the body uncompressed.");
}

/** An empty body means that the call is in the query (compat C11). */
function descriptionFrom(body: Buffer, query: CallQuery): CallDescription {
  return body.length === 0 && query.dotted.length > 0 ? descriptionFromDotted(query.dotted) : descriptionFromBody(body);
}

function callFrom(
  options: RestOptions,
  exchange: Exchange,
  query: CallQuery,
  description: CallDescription,
  memory: Reservation,
  signal: ResponseSignal,
): Call {
  const { request, origin } = exchange;
  const keys = callerKeysOf(request, query);
  return {
    // Member by member: a spread takes V8 longer than reading the request's body.
    callId: origin.callId,
    surface: origin.surface,
    startedAt: origin.startedAt,
    providerName: origin.providerName,
    publicKey: keys.publicKey,
    userId: query.fields.get("user_id") ?? "",
    proof: {
      privateKey: keys.privateKey,
      userSignature: query.fields.get("user_signature"),
      origin: request.headers.origin,
      address: options.clientAddress(request),
    },
    description,
    responseMode: responseModeFrom(query.fields.get("response_mode")),
    memory,
    signal,
    deadline: origin.startedAt + options.deadlineMs,
  };
}

/** ProtoJSON of the enum. */
function responseModeFrom(text: string | undefined): ResponseMode {
  if (text === "RESPONSE_MODE_BODY") return "body";
  if (text === undefined || text === "RESPONSE_MODE_DATA" || text === "RESPONSE_MODE_UNSPECIFIED") return "data";
  throw formatError("response_mode must be RESPONSE_MODE_DATA or RESPONSE_MODE_BODY.");
}

async function answerOutcome(
  options: RestOptions,
  { request, response, queryText }: Exchange,
  outcome: Outcome,
  dataAt: string | undefined,
): Promise<void> {
  // Only browsers send it, and only their answers wait for the list.
  const isBrowser = request.headers.origin !== undefined;
  const cors = isBrowser ? await corsFieldsFor(options.allowedOrigins, options.route, request, queryText) : undefined;
  if (response.destroyed) return;
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
  response.end(body);
}

/** An HTTP/1.1 request that was not read to its end leaves bytes behind that are not the next request. */
function mustClose(request: HttpRequest): boolean {
  return request.httpVersionMajor === 1 && !request.complete;
}

/** A status that an HTTP response with a body cannot have stays in the row alone. */
function mirroredStatus(outcome: Outcome): number {
  const status = outcome.result === "success" ? outcome.answer.statusCode : outcome.statusCode;
  return status < 200 || status > 599 || status === 204 || status === 205 || status === 304 ? 200 : status;
}
