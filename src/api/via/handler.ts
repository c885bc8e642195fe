import type { Budget, StreamGarbage } from "../../call/budget.js";
import type { Call, CallOrigin } from "../../call/call.js";
import type { AnswerHead } from "../../call/outcome.js";
import type { Relay } from "../../call/relay.js";
import type { ListsOrigin } from "../../http/cors.js";
import type { PathHandler } from "../../http/dispatch.js";
import { clientNetworkOf, type HttpRequest, type HttpResponse, watchCaller } from "../../http/exchange.js";
import { discardRestAfter } from "../../http/sweep.js";
import { parseUrl } from "../../lib/parse-url.js";
import { formatError, overloaded } from "../../model/errors.js";
import { matchOrigin } from "../../providers/egress.js";
import type { Provider, ProviderCatalog } from "../../providers/provider.js";
import { answerOriginPreflight, corsFieldsIfListed } from "../rest/preflight.js";
import { originOf } from "../rest/read-call.js";
import { fieldsFromHead, writeRow, writeStream } from "../rest/stream-handler.js";
import { isProofCarried, parseTarget, readPassedHead, type Target, VIA } from "./read-call.js";
import { hasBody, requestBodyOf } from "./request-body.js";

/** What the pass-through needs from the rest of the service. */
interface ViaHandlerOptions {
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

/** Where an answer comes from and goes to. */
interface Rewriting {
  readonly provider: Provider;
  /** What the caller called it: its name or an alias, so that a client keeps to one prefix. */
  readonly providerName: string;
  /** The URL that was asked for. */
  readonly url: string;
  /** Origin of the relay as the caller reaches it. */
  readonly relayOrigin: string;
  /** Whether a client would show the caller's proof to the place that a redirect leads to, see `isProofCarried`. */
  readonly isProofCarried: boolean;
}

/** Fields with one URL (RFC 9110 sections 8.7 and 10.2.2). */
const PLACES: ReadonlySet<string> = new Set(["location", "content-location"]);
/** What is more than copied; no other field of most answers is. */
const SPECIAL = /^(?:(?:content-)?location$|link$|x-provider-)/i;
/** Enough for any page of a list; every target may become as long as the URL that was asked for. */
const MAX_LINKS = 50;
/** Node.js refuses longer heads by default, and so do others, in characters. */
const MAX_LINK_LENGTH = 16_384;

/**
 * Fields of an answer that is passed through: those of the raw route, and where the provider names a place of its own, the
 * way there through the relay. What a client could not follow safely comes as `x-provider-…`. Pure.
 *
 * @param rewriting asked for only where a field names places.
 */
function passedFieldsFrom(
  head: AnswerHead,
  callId: string,
  cors: Readonly<Record<string, string>> | undefined,
  method: string,
  rewriting: () => Rewriting,
): Record<string, string> {
  if (method !== "HEAD" && !head.headers.some(([name]) => SPECIAL.test(name)))
    return fieldsFromHead(head, callId, cors);
  const alsoKept = new Set<string>();
  const headers = head.headers.map(([written, value]) => {
    const name = written.toLowerCase();
    if (PLACES.has(name)) {
      const way = rewriting();
      const place = placeFrom(value, way);
      if (place.isOwn || !(place.isRelay || way.isProofCarried)) alsoKept.add(name);
      return [name, place.url] as const;
    }
    if (name !== "link") return [name, value] as const;
    const links = linksFrom(value, rewriting());
    return links === undefined ? (["x-provider-link", value] as const) : ([name, links] as const);
  });
  // Of HEAD there is no body that redaction could make shorter.
  if (method === "HEAD" && !headers.some(([name]) => name === "content-encoding")) alsoKept.add("content-length");
  for (const [name] of headers) if (name.startsWith("x-provider-")) alsoKept.add(name);
  return fieldsFromHead({ ...head, headers }, callId, cors, alsoKept);
}

/** RFC 8288 section 3: a target stands between angle brackets, which no URL has. Undefined for what is too much, or leads astray. */
function linksFrom(value: string, rewriting: Rewriting): string | undefined {
  if (value.split("<", MAX_LINKS + 2).length > MAX_LINKS + 1) return undefined;
  let isAstray = false;
  const links = value.replace(/<([^<>]*)>/g, (_, target: string) => {
    const { url, isRelay } = placeFrom(target, rewriting);
    isAstray ||= isRelay;
    return `<${url}>`;
  });
  return isAstray || links.length > MAX_LINK_LENGTH ? undefined : links;
}

/** Where a URL of an answer leads. */
interface Place {
  readonly url: string;
  /** The provider's own, through the relay now. */
  readonly isOwn: boolean;
  /** At the relay itself: who follows it would show the proof of one provider's request at another's, or anywhere here. */
  readonly isRelay: boolean;
}

/**
 * A URL of the provider as one of the relay, everything behind the origin as it was written where it can stay so; a URL of
 * anybody else as it is. Pure.
 */
function placeFrom(written: string, { provider, providerName, url, relayOrigin }: Rewriting): Place {
  const parsed = parseUrl(written, url);
  const isOwn = parsed !== undefined && matchOrigin(parsed.origin, provider) !== undefined;
  if (!isOwn || parsed.username !== "" || parsed.password !== "") {
    return { url: written, isOwn: false, isRelay: parsed !== undefined && parsed.host === parseUrl(relayOrigin)?.host };
  }
  const through = `${relayOrigin}/via/${providerName}/${parsed.host}${tailOf(written, parsed)}`;
  return { url: through, isOwn: true, isRelay: false };
}

/** An absolute URL, or one that begins at the root, keeps its bytes, unless a client would resolve them to another path. */
function tailOf(written: string, { origin, pathname, search, hash }: URL): string {
  const isOfOrigin = written.slice(0, origin.length).toLowerCase() === origin;
  const tail = isOfOrigin ? written.slice(origin.length) : written;
  const isKept = (isOfOrigin ? /^\/[\x21-\x7e]*$/ : /^\/(?!\/)[\x21-\x7e]*$/).test(tail) && !tail.includes("\\");
  return isKept && !DOT_SEGMENT.test(tail) ? tail : `${pathname}${search}${hash}`;
}

/** In a path, also encoded (URL standard, single-dot and double-dot segment). */
const DOT_SEGMENT = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;
