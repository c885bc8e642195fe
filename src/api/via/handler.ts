import type { Budget, StreamGarbage } from "../../call/budget.js";
import type { Call, CallOrigin } from "../../call/call.js";
import type { Relay } from "../../call/relay.js";
import type { ListsOrigin } from "../../http/cors.js";
import type { PathHandler } from "../../http/dispatch.js";
import { clientNetworkOf, type HttpRequest, type HttpResponse, watchCaller } from "../../http/exchange.js";
import { discardRestAfter } from "../../http/sweep.js";
import { formatError, overloaded } from "../../model/errors.js";
import type { ProviderCatalog } from "../../providers/provider.js";
import { answerOriginPreflight, corsFieldsIfListed } from "../rest/preflight.js";
import { originOf } from "../rest/read-call.js";
import { writeRow, writeStream } from "../rest/stream-handler.js";
import { passedFieldsFrom, type Rewriting } from "./answer-fields.js";
import { isProofCarried, parseTarget, readPassedHead, type Target, VIA } from "./read-call.js";
import { hasBody, requestBodyOf } from "./request-body.js";

/** What the pass-through needs from the rest of the service. */
export interface ViaHandlerOptions {
  readonly relay: Relay;
  readonly listsOrigin: ListsOrigin;
  readonly catalog: ProviderCatalog;
  readonly budget: Budget;
  readonly clientAddress: (request: HttpRequest) => string;
  readonly deadlineMs: number;
  readonly maxStreamRequestBytes: number;
  readonly streamGarbage: StreamGarbage;
  /** The origin at which browsers reach the relay; undefined while it is not known. */
  readonly publicUrl: () => string | undefined;
  readonly isEncrypted: (request: HttpRequest) => boolean;
}

/** One request that is passed through. */
interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly origin: CallOrigin;
  /** Undefined when the path names no provider and host. */
  readonly target: Target | undefined;
}

/** Requests in the provider's own form: the request as it came → relay → the answer as it comes. */
export function createViaHandler(options: ViaHandlerOptions): PathHandler {
  return (request, response, path) => {
    if (!path.startsWith(VIA)) return undefined;
    if (isPreflight(request)) return answerPreflight(options, request, response);
    const target = parseTarget(request.url ?? "");
    const origin = originOf({ surface: "via" }, request, target?.providerName ?? "");
    return answerVia(options, { request, response, origin, target });
  };
}

async function answerVia(options: ViaHandlerOptions, exchange: Exchange): Promise<void> {
  const { request, response, origin } = exchange;
  // Only browsers send it, and only their answers wait for the list.
  const isBrowser = request.headers.origin !== undefined;
  let call: Call;
  try {
    call = callFrom(options, exchange);
  } catch (error) {
    const cors = await corsFieldsIfListed(options, request);
    return writeRow(response, options.relay.refuse(origin, error), "x-relay-error", cors);
  }
  const cors = isBrowser ? await corsFieldsIfListed(options, request) : undefined;
  const rewriting = () => rewritingOf(options, exchange, call);
  await writeStream(await options.relay.stream(call), call.signal, {
    response,
    fieldsOf: (head) => passedFieldsFrom(head, origin.callId, cors, call.description.method, rewriting),
    answerRow: (outcome) => writeRow(response, outcome, "x-relay-error", cors),
  });
}

/** Throws RelayError CALL_FORMAT_ERROR, CALLER_NOT_ALLOWED, REQUEST_TOO_LARGE or OVERLOADED. */
function callFrom(options: ViaHandlerOptions, { request, response, origin, target }: Exchange): Call {
  if (hasBody(request)) discardRestAfter(request, response);
  const address = options.clientAddress(request);
  const memory = options.budget.open(clientNetworkOf(address));
  const signal = watchCaller(response, memory);
  if (target === undefined) throw formatError("The path must be /via/PROVIDER/HOST/PATH.");
  const head = readPassedHead(request, target, options.catalog.find(origin.providerName), address);
  const body = requestBodyOf(request, response, {
    maxBytes: options.maxStreamRequestBytes,
    proofs: head.proofs,
    onBytes: (bytes) => options.streamGarbage.add(bytes),
  });
  if (!memory.begin()) throw overloaded();
  return {
    // Member by member, as on the JSON route: V8 is slow at spreading.
    callId: origin.callId,
    requestId: origin.requestId,
    traceContext: origin.traceContext,
    surface: origin.surface,
    startedAt: origin.startedAt,
    providerName: origin.providerName,
    publicKey: head.caller.publicKey,
    userId: head.caller.userId,
    proof: head.caller.proof,
    description: {
      url: head.url,
      method: request.method ?? "",
      headers: head.headers,
      payload: undefined,
      queryString: undefined,
      explodeArrays: false,
      body: undefined,
      passed: { target: head.path, body, requireProofOnce: head.requireProofOnce },
    },
    responseMode: "body",
    memory,
    signal,
    deadline: origin.startedAt + options.deadlineMs,
  };
}

function rewritingOf(options: ViaHandlerOptions, { request, origin }: Exchange, { description }: Call): Rewriting {
  const provider = options.catalog.find(origin.providerName);
  if (provider === undefined) throw new Error("the provider of an answer is not in the catalogue");
  return {
    provider,
    providerName: origin.providerName,
    url: description.url,
    relayOrigin: relayOriginOf(request, options),
    isProofCarried: isProofCarried(request.rawHeaders, provider.credential),
  };
}

/** The origin that the caller used; a proxy in front may have the address of browsers. */
function relayOriginOf(request: HttpRequest, { publicUrl, isEncrypted }: ViaHandlerOptions): string {
  const host = String(request.headers[":authority"] ?? request.headers.host ?? "").toLowerCase();
  const known = publicUrl();
  if (known !== undefined && new URL(known).host === host) return known;
  return `${isEncrypted(request) ? "https" : "http"}://${host}`;
}

/** A provider's own OPTIONS comes without the question of a browser (Fetch standard, CORS-preflight fetch). */
function isPreflight({ method, headers }: HttpRequest): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && "access-control-request-method" in headers;
}

function answerPreflight(options: ViaHandlerOptions, request: HttpRequest, response: HttpResponse): Promise<void> {
  const asked = String(request.headers["access-control-request-method"]);
  const methods = /^[\w-]{1,64}$/.test(asked) ? asked : "GET";
  return answerOriginPreflight(options, request, response, { methods, headers: "authorization" });
}
