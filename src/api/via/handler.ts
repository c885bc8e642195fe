import type { Budget, StreamGarbage } from "../../call/budget.js";
import { type Call, type CallOrigin, createCall } from "../../call/call.js";
import type { AnswerHead } from "../../call/outcome.js";
import type { Relay } from "../../call/relay.js";
import { answerOriginPreflight, corsFieldsIfListed, type ListsOrigin } from "../../http/cors.js";
import type { PathHandler } from "../../http/dispatch.js";
import { clientNetworkOf, type HttpRequest, type HttpResponse, watchCaller } from "../../http/exchange.js";
import { parseUrl } from "../../lib/parse-url.js";
import { formatError, overloaded } from "../../model/errors.js";
import { matchOrigin } from "../../providers/egress.js";
import type { Provider, ProviderCatalog } from "../../providers/provider.js";
import { originOf } from "../rest/read-call.js";
import { fieldsFromHead, writeRow, writeStream } from "../rest/stream-handler.js";
import { isProofCarried, parseTarget, readPassedHead, type Target, VIA } from "./read-call.js";
import { requestBodyOf } from "./request-body.js";

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
  /** The origin at which browsers reach the relay; undefined if not known. */
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

/** The pass-through route: takes requests in the provider's own form and streams the answer. */
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
  // Only browsers send Origin, so only their answers wait for the lookup of the list.
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
  return createCall(origin, head.caller, {
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
  });
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

/** The relay's origin as this caller reached it: the public URL if its host matches, else from Host and the scheme. */
function relayOriginOf(request: HttpRequest, { publicUrl, isEncrypted }: ViaHandlerOptions): string {
  const host = String(request.headers[":authority"] ?? request.headers.host ?? "").toLowerCase();
  const known = publicUrl();
  if (known !== undefined && new URL(known).host === host) return known;
  return `${isEncrypted(request) ? "https" : "http"}://${host}`;
}

/** An OPTIONS request meant for the provider lacks the fields of a preflight (Fetch standard, CORS-preflight fetch). */
function isPreflight({ method, headers }: HttpRequest): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && "access-control-request-method" in headers;
}

function answerPreflight(options: ViaHandlerOptions, request: HttpRequest, response: HttpResponse): Promise<void> {
  const asked = String(request.headers["access-control-request-method"]);
  const methods = /^[\w-]{1,64}$/.test(asked) ? asked : "GET";
  return answerOriginPreflight(options, request, response, { methods, headers: "authorization" });
}

/** What is needed to rewrite the URLs in an answer. */
interface Rewriting {
  readonly provider: Provider;
  /** The provider's name or alias as the caller wrote it, so that a client stays under one prefix. */
  readonly providerName: string;
  /** The requested URL. */
  readonly url: string;
  /** Origin of the relay as the caller reaches it. */
  readonly relayOrigin: string;
  /** Whether a client would send the caller's proof to the target of a redirect, see `isProofCarried`. */
  readonly isProofCarried: boolean;
}

/** Fields with one URL (RFC 9110 sections 8.7 and 10.2.2). */
const PLACES: ReadonlySet<string> = new Set(["location", "content-location"]);
/** Fields that need more than copying; most answers have none. */
const SPECIAL = /^(?:(?:content-)?location$|link$|x-provider-)/i;
/** Enough for any page of a list. Bounded because each target may become as long as the requested URL. */
const MAX_LINKS = 50;
/** In characters: Node.js and others refuse longer heads by default. */
const MAX_LINK_LENGTH = 16_384;

/**
 * Fields of a passed-through answer: those of the raw route, with the provider's own URLs rewritten to lead through the
 * relay. A URL that a client could not follow safely goes into an `x-provider-…` field. Pure.
 *
 * @param rewriting called only when a field has a URL.
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
  // An answer to HEAD has no body that redaction could shorten.
  if (method === "HEAD" && !headers.some(([name]) => name === "content-encoding")) alsoKept.add("content-length");
  for (const [name] of headers) if (name.startsWith("x-provider-")) alsoKept.add(name);
  return fieldsFromHead({ ...head, headers }, callId, cors, alsoKept);
}

/**
 * Rewrites the targets of a Link field. RFC 8288 section 3: they are in angle brackets, which no URL contains.
 * Undefined when there are too many, when the result is too long, or when a target is at the relay itself.
 */
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

/** Where a URL in an answer leads. */
interface Place {
  readonly url: string;
  /** A URL of the provider, rewritten to lead through the relay. */
  readonly isOwn: boolean;
  /**
   * A URL at the relay itself: a client that follows it would send its proof to another provider's route, or any other.
   */
  readonly isRelay: boolean;
}

/**
 * Rewrites a URL of the provider to lead through the relay; what follows the origin stays as written if possible. Any
 * other URL is unchanged. Pure.
 */
function placeFrom(written: string, { provider, providerName, url, relayOrigin }: Rewriting): Place {
  // A field's bytes are Latin-1 text here; clients send those above ASCII as they are, percent-encoded.
  const parsed = parseUrl(
    written.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`),
    url,
  );
  const isOwn = parsed !== undefined && matchOrigin(parsed.origin, provider) !== undefined;
  if (!isOwn || parsed.username !== "" || parsed.password !== "") {
    return { url: written, isOwn: false, isRelay: parsed !== undefined && parsed.host === parseUrl(relayOrigin)?.host };
  }
  const through = `${relayOrigin}/via/${providerName}/${parsed.host}${tailOf(written, parsed)}`;
  return { url: through, isOwn: true, isRelay: false };
}

/** What follows the origin. An absolute URL or path keeps its bytes, unless a client would resolve them differently. */
function tailOf(written: string, { origin, pathname, search, hash }: URL): string {
  const isOfOrigin = written.slice(0, origin.length).toLowerCase() === origin;
  const tail = isOfOrigin ? written.slice(origin.length) : written;
  const isKept = (isOfOrigin ? /^\/[\x21-\x7e]*$/ : /^\/(?!\/)[\x21-\x7e]*$/).test(tail) && !tail.includes("\\");
  return isKept && !DOT_SEGMENT.test(tail) ? tail : `${pathname}${search}${hash}`;
}

/** A dot segment in a path, also percent-encoded (URL standard, single-dot and double-dot segment). */
const DOT_SEGMENT = /^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;
