import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import { MAX_CALL_TOKEN_LENGTH } from "../../applications/call-token.js";
import { callerFieldsOf, callerFrom, MAX_ID_LENGTH, type NamedKeys } from "../../applications/caller.js";
import type { Budget } from "../../call/budget.js";
import {
  type Call,
  type CallDescription,
  type CallOrigin,
  createCall,
  type ResponseMode,
  type Surface,
} from "../../call/call.js";
import { callerGone, isGone } from "../../call/outcome.js";
import {
  clientNetworkOf,
  type HttpRequest,
  type HttpResponse,
  type ResponseSignal,
  readBody,
  watchCaller,
} from "../../http/exchange.js";
import { identityOf } from "../../http/identity.js";
import { type Bytes, joinedInSteps, LARGE_BYTES } from "../../lib/chunks.js";
import { decodePercent } from "../../lib/parse-url.js";
import { atOnce, type Steps, type Turns, type WorkLimits } from "../../lib/turns.js";
import { formatError, overloaded } from "../../model/errors.js";
import { descriptionFromBody, descriptionFromDotted } from "./description.js";

/** A JSON route as the schema's google.api.http annotation describes it (AIP-127). */
export interface Route {
  /** Upper-case HTTP method. */
  readonly method: string;
  /**
   * Query parameter → field name: every top-level field that is neither in the path nor the body, by its proto name
   * and by its JSON name.
   */
  readonly queryFields: ReadonlyMap<string, string>;
  /** Raw (still percent-encoded) values of the path variables, undefined when the path is not this route's. */
  match(path: string): readonly string[] | undefined;
}

/** Reads the route of a method from its annotation; throws at start when the schema has none or one of another shape. */
export function routeFromMethod(method: DescMethod): Route {
  if (!hasOption(method, http)) throw new Error(`${method.name}: no google.api.http annotation`);
  const { pattern, body } = getOption(method, http);
  if (pattern.case !== "get" && pattern.case !== "post" && pattern.case !== "delete") {
    throw new Error(`${method.name}: only get, post and delete are supported`);
  }
  if ((body !== "") !== (pattern.case === "post")) throw new Error(`${method.name}: only a post has a body`);
  const template = pattern.value;
  const pathFields = [...template.matchAll(/\{(\w+)\}/g)].map((variable) => variable[1] as string);
  return {
    method: pattern.case.toUpperCase(),
    // With `*` the body is the whole message, and the query has no fields of it.
    queryFields: body === "*" ? new Map() : queryFieldsOf(method, [...pathFields, body]),
    match: matcherFor(template),
  };
}

function queryFieldsOf(method: DescMethod, taken: readonly string[]): ReadonlyMap<string, string> {
  const fields = method.input.fields.filter((field) => !taken.includes(field.name));
  return new Map(
    fields.flatMap((field) => [
      [field.name, field.name],
      [field.jsonName, field.name],
    ]),
  );
}

function matcherFor(template: string): Route["match"] {
  const [prefix = ""] = template.split(/\{\w+\}/);
  const escaped = template.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{\w+\}/g, "([^/]+)");
  const pattern = new RegExp(`^${escaped}$`);
  return (path) => (path.startsWith(prefix) ? pattern.exec(path)?.slice(1) : undefined);
}

/** What reading a call needs from the rest of the service. */
export interface CallReaderOptions {
  readonly route: Route;
  readonly budget: Budget;
  readonly clientAddress: (request: HttpRequest) => string;
  readonly surface: Surface;
  readonly maxRequestBytes: number;
  readonly deadlineMs: number;
  /** For bodies too large to be read in one go. */
  readonly turns: Turns;
}

/** One request on a route. */
export interface Exchange {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly origin: CallOrigin;
  /** The query, without its question mark. */
  readonly queryText: string;
}

/**
 * Reads the call of a request. The call is in flight from then on until the response is closed.
 *
 * Rejects with RelayError CALL_FORMAT_ERROR, REQUEST_TOO_LARGE or OVERLOADED.
 */
export async function readCall(options: CallReaderOptions, exchange: Exchange): Promise<Call> {
  const fields = callerFieldsOf(exchange.request, options.clientAddress(exchange.request));
  const memory = options.budget.open(clientNetworkOf(fields.address));
  const signal = watchCaller(exchange.response, memory);
  requirePlainBody(exchange.request);
  const query = parseCallQuery(exchange.queryText, options.route.queryFields);
  const body = await readBody(exchange.request, options.maxRequestBytes, memory, signal);
  if (!memory.begin()) throw overloaded();
  const isLarge = body.length > LARGE_BYTES;
  const limits = { signal, deadline: exchange.origin.startedAt + options.deadlineMs, memory };
  const description = isLarge ? await readInTurns(options, body, limits) : descriptionFrom(body.concat(), query);
  const caller = callerFrom(fields, namedKeysOf(query));
  const responseMode = responseModeFrom(query.fields.get("response_mode"));
  return createCall(exchange.origin, caller, { description, responseMode, memory, signal, deadline: limits.deadline });
}

/** Reads a large body in turns. A caller that disconnects meanwhile is not reported as an internal error. */
async function readInTurns(
  { turns }: CallReaderOptions,
  body: Bytes,
  limits: WorkLimits & { readonly signal: ResponseSignal },
): Promise<CallDescription> {
  try {
    return await turns.take(readInSteps(body), limits);
  } catch (error) {
    throw isGone(limits.signal) ? callerGone() : error;
  }
}

/** What is known of a call before it is read. */
export function originOf(
  { surface }: Pick<CallReaderOptions, "surface">,
  request: HttpRequest,
  rawProviderName: string,
): CallOrigin {
  const { callId, requestId, traceContext } = identityOf(request);
  return {
    callId,
    requestId,
    traceContext,
    surface,
    startedAt: performance.now(),
    providerName: providerNameFrom(rawProviderName),
  };
}

/** Decodes a provider's name. A name that is encoded wrongly is left unchanged, and matches no provider. */
export function providerNameFrom(raw: string): string {
  return raw.includes("%") ? (decodePercent(raw) ?? raw) : raw;
}

/**
 * Refuses compressed bodies by name: the error would otherwise only say that they are not UTF-8. Ignores other codings.
 */
function requirePlainBody({ headers }: HttpRequest): void {
  if (!/\b(?:gzip|compress|deflate|br|zstd)\b/i.test(headers["content-encoding"] ?? "")) return;
  throw formatError("The content-encoding of the request is not supported. Send the body uncompressed.");
}

function* readInSteps(body: Bytes): Steps<CallDescription> {
  return yield* descriptionFromBody(yield* joinedInSteps(body));
}

/** With an empty body the call is read from the query (compat C11). */
function descriptionFrom(body: Buffer, query: CallQuery): CallDescription {
  const isInQuery = body.length === 0 && query.dotted.length > 0;
  return atOnce(isInQuery ? descriptionFromDotted(query.dotted) : descriptionFromBody(body));
}

/** The response mode by its ProtoJSON name. */
function responseModeFrom(text: string | undefined): ResponseMode {
  if (text === "RESPONSE_MODE_BODY") return "body";
  if (text === undefined || text === "RESPONSE_MODE_DATA" || text === "RESPONSE_MODE_UNSPECIFIED") return "data";
  throw formatError("response_mode must be RESPONSE_MODE_DATA or RESPONSE_MODE_BODY.");
}

/** Old names of query parameters that clients of the original service still send (compat C1). */
const ALIASES: ReadonlyMap<string, string> = new Map([["pinc_client_id", "public_key"]]);

/** Query parameters of a call: the fields of the request message, and the call itself in dotted form (compat C11). */
interface CallQuery {
  /** By field name. */
  readonly fields: ReadonlyMap<string, string>;
  /** `body.url`, `body.headers.x-a`, …: path without the prefix → value, in the order written. */
  readonly dotted: ReadonlyArray<readonly [path: string, value: string]>;
}

/**
 * Parses the query strictly. Throws CALL_FORMAT_ERROR for a known name that is repeated or has brackets, for a percent
 * sign that starts no escape, and for bytes that are not UTF-8. Ignores unknown names, since clients add cache busters.
 */
export function parseCallQuery(query: string, known: ReadonlyMap<string, string>): CallQuery {
  const fields = new Map<string, string>();
  const dotted: Array<readonly [string, string]> = [];
  const decode = ENCODED.test(query) ? decodeOr : asWritten;
  for (const pair of query === "" ? [] : query.split("&")) {
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals), "a query parameter's name");
    if (name.startsWith("body.")) {
      dotted.push([name.slice("body.".length), decode(equals === -1 ? "" : pair.slice(equals + 1), "body.*")]);
      continue;
    }
    const field = fieldFor(name, known);
    if (field === undefined) continue;
    if (fields.has(field)) throw formatError(`${field} is given more than once in the query. Send it once.`);
    fields.set(field, checkedValue(decode(equals === -1 ? "" : pair.slice(equals + 1), field), field));
  }
  return { fields, dotted };
}

/** The keys and the signature that a query names. */
export function namedKeysOf({ fields }: CallQuery): NamedKeys {
  return {
    publicKey: fields.get("public_key") ?? "",
    userId: fields.get("user_id") ?? "",
    privateKey: fields.get("private_key"),
    userSignature: fields.get("user_signature"),
  };
}

function fieldFor(name: string, known: ReadonlyMap<string, string>): string | undefined {
  const direct = known.get(name) ?? ALIASES.get(name);
  if (direct !== undefined || !name.includes("[")) return direct;
  const field = fieldFor(name.slice(0, name.indexOf("[")), known);
  if (field !== undefined) throw formatError(`${field} must be one plain value in the query, without brackets.`);
  return undefined;
}

function checkedValue(value: string, field: string): string {
  const maxLength = field === "private_key" ? MAX_CALL_TOKEN_LENGTH : MAX_ID_LENGTH;
  if (value.length > maxLength) {
    throw formatError(`${field} is longer than ${maxLength} characters. Send the value you were given.`);
  }
  return value;
}

const ENCODED = /[%+]/;

/** For a query without encoded characters, as in most calls. */
function asWritten(raw: string): string {
  return raw;
}

/** Percent-decoding of the URL standard's form parser (`+` is a space), but strict. */
function decodeOr(raw: string, field: string): string {
  if (!raw.includes("%")) return raw.includes("+") ? raw.replaceAll("+", " ") : raw;
  const text = decodePercent(raw.replaceAll("+", " "));
  if (text === undefined) throw formatError(`${field} is not correctly percent-encoded. Encode it as UTF-8.`);
  return text;
}
