import type { TLSSocket } from "node:tls";
import type { CallerProof } from "../../applications/caller.js";
import { type Budget, overloaded, type StreamGarbage } from "../../call/budget.js";
import type { Call, CallOrigin } from "../../call/call.js";
import { type ErrorOutcome, isGone } from "../../call/outcome.js";
import type { Relay, StreamPart } from "../../call/relay.js";
import { corsHeaders, decideCors, preflightHeaders } from "../../http/cors.js";
import type { PathHandler } from "../../http/dispatch.js";
import {
  answerPlain,
  clientNetworkOf,
  cut,
  type HttpRequest,
  type HttpResponse,
  hasContent,
  watchCaller,
  writeChunk,
  writeHeadOf,
} from "../../http/exchange.js";
import { discardRestAfter } from "../../http/long-upload.js";
import { formatError } from "../../model/errors.js";
import type { ProviderCatalog } from "../../providers/provider.js";
import { bodyFromOutcome, bytesFromBody } from "../rest/envelope.js";
import type { BrowserOrigins } from "../rest/preflight.js";
import { originOf } from "../rest/read-call.js";
import { passedFieldsFrom } from "./answer-fields.js";
import { isProofCarried, parseTarget, readPassedHead, type Target, VIA } from "./read-call.js";
import { requestBodyOf } from "./request-body.js";

/** What the pass-through needs from the rest of the service. */
export interface ViaHandlerOptions extends BrowserOrigins {
  readonly relay: Relay;
  readonly catalog: ProviderCatalog;
  readonly budget: Budget;
  readonly clientAddress: (request: HttpRequest) => string;
  readonly deadlineMs: number;
  readonly maxStreamRequestBytes: number;
  readonly streamGarbage: StreamGarbage;
  /** The origin at which browsers reach the relay; undefined while it is not known. */
  readonly publicUrl: () => string | undefined;
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
  discardRestAfter(request, response);
  let call: Call;
  try {
    call = callFrom(options, exchange);
  } catch (error) {
    return answerRow(exchange, options.relay.refuse(origin, error), undefined);
  }
  const cors = await corsFieldsFor(options, call);
  for await (const part of options.relay.stream(call)) {
    // Leaving the loop lets the provider's socket go.
    if (isGone(call.signal) || !(await answerPart(options, exchange, call, cors, part))) break;
  }
  if (!response.writableEnded) response.end();
}

/** Throws RelayError CALL_FORMAT_ERROR, CALLER_NOT_ALLOWED, REQUEST_TOO_LARGE or OVERLOADED. */
function callFrom(options: ViaHandlerOptions, { request, response, origin, target }: Exchange): Call {
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
    ...origin,
    ...head.caller,
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

/** False when nothing more is to be sent. */
async function answerPart(
  options: ViaHandlerOptions,
  exchange: Exchange,
  call: Call,
  cors: CorsFields,
  part: StreamPart,
): Promise<boolean> {
  const { response } = exchange;
  switch (part.kind) {
    case "head":
      if (!response.destroyed)
        writeHeadOf(response, part.head.statusCode, fieldsOf(options, exchange, call, cors, part));
      return true;
    case "chunk":
      return hasContent(response.statusCode) && writeChunk(response, part.bytes);
    case "failure":
      if (response.headersSent) cut(response);
      else answerRow(exchange, part.outcome, cors);
      return false;
  }
}

function fieldsOf(
  options: ViaHandlerOptions,
  { request, origin }: Exchange,
  { description: { url, method } }: Call,
  cors: CorsFields,
  { head }: StreamPart & { kind: "head" },
): Record<string, string> {
  const provider = options.catalog.find(origin.providerName);
  if (provider === undefined) throw new Error("the provider of an answer is not in the catalogue");
  const relayOrigin = relayOriginOf(request, options.publicUrl());
  const isCarried = () => isProofCarried(request.rawHeaders, provider.credential);
  const rewriting = { provider, providerName: provider.name, url, relayOrigin, isProofCarried: isCarried };
  return passedFieldsFrom(head, origin.callId, cors, method, rewriting);
}

/** The origin that the caller used: its scheme is the socket's, unless a proxy in front has the address of browsers. */
function relayOriginOf(request: HttpRequest, publicUrl: string | undefined): string {
  const host = String(request.headers[":authority"] ?? request.headers.host ?? "").toLowerCase();
  if (publicUrl !== undefined && new URL(publicUrl).host === host) return publicUrl;
  const isEncrypted = (request.socket as Partial<TLSSocket>).encrypted === true;
  return `${isEncrypted ? "https" : "http"}://${host}`;
}

/** The relay's own refusal. A provider's answer never has `x-relay-error`, whatever its status. */
function answerRow({ response }: Exchange, outcome: ErrorOutcome, cors: CorsFields): void {
  if (response.destroyed) return;
  const body = bytesFromBody(bodyFromOutcome(outcome, undefined));
  response.writeHead(outcome.statusCode, {
    "content-type": "application/json",
    "content-length": String(body.length),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-call-id": outcome.callId,
    "x-relay-error": outcome.errorType,
    ...cors,
    ...(cors === undefined ? undefined : { "access-control-expose-headers": "x-call-id, x-relay-error, x-request-id" }),
  });
  response.end(body);
}

type CorsFields = Record<string, string> | undefined;

/** Undefined for who is no browser. When the store cannot be read nothing is allowed; the row says why. */
async function corsFieldsFor(
  { allowedOrigins }: BrowserOrigins,
  { publicKey, proof: { origin } }: { readonly publicKey: string; readonly proof: CallerProof },
): Promise<CorsFields> {
  if (origin === undefined) return undefined;
  const allowed = await allowedOrigins(publicKey).catch(() => []);
  return decideCors(origin, allowed) ? { vary: "Origin", ...corsHeaders(origin) } : { vary: "Origin" };
}

/** A provider's own OPTIONS comes without the question of a browser (Fetch standard, CORS-preflight fetch). */
function isPreflight({ method, headers }: HttpRequest): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && "access-control-request-method" in headers;
}

/** A preflight names no application: that some list has the origin is enough, the request itself is judged by its own. */
async function answerPreflight({ listsOrigin }: BrowserOrigins, request: HttpRequest, response: HttpResponse) {
  const {
    origin = "",
    "access-control-request-method": asked,
    "access-control-request-headers": names,
  } = request.headers;
  if (!(await listsOrigin(origin).catch(() => false))) {
    answerPlain(response, 403, "This origin is not on the list of any application.", { vary: "Origin" });
    return;
  }
  const methods = /^[\w-]{1,64}$/.test(String(asked)) ? String(asked) : "GET";
  const headers = /^[\w, -]{1,2048}$/.test(String(names)) ? String(names) : "authorization";
  response.writeHead(204, { vary: "Origin", ...preflightHeaders(origin, { methods, headers }) });
  response.end();
}
