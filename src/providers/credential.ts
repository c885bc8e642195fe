import { inspect } from "node:util";
import { slicePath } from "../json/json-path.js";
import { kindAt, textAt } from "../json/json-slice.js";
import { isJson } from "../json/json-validator.js";
import type { Bytes } from "../lib/chunks.js";
import { formatError, type RelayError } from "../model/errors.js";
import type { Secret } from "../sealing/seal.js";
import { fillTemplate, textIn, type ValueTexts } from "./connection-value.js";
import type { Credential, ExpirySignal, HeaderPairs, Provider } from "./provider.js";

/** The places of a provider's credentials. First the main one, where a pass-through call may carry its call token. */
export function placesOf({ credential, furtherCredentials }: Provider): readonly Credential[] {
  return furtherCredentials.length === 0 ? [credential] : [credential, ...furtherCredentials];
}

/** Input of placeCredential(). */
interface CredentialInput {
  readonly provider: Provider;
  /** The caller's headers, as returned by decideHeaders(). */
  readonly headers: HeaderPairs;
  /** The relay's own headers; each is sent unless the caller or the provider's definition sets it. */
  readonly defaults: HeaderPairs;
  /** Path and query, as returned by decideEgress(). */
  readonly path: string;
  /** The text for each of the provider's places, in order; undefined leaves a place empty. */
  readonly texts: CredentialTexts;
  /** Values stored with the connection. */
  readonly values: ValueTexts;
}

/** Texts for the places of a provider's credentials, see `fillCredential()`. */
export type CredentialTexts = ReadonlyArray<Secret | undefined>;

/** A request's headers and path, with the credentials in them. Prints as a placeholder. */
interface PlacedCredential {
  /** Flat list name, value, name, value, …; exactly one credential in each of the provider's own places. */
  readonly headers: readonly string[];
  readonly path: string;
  toJSON(): string;
  [inspect.custom](): string;
}

/** Never forwarded from a caller, wherever the provider's credential goes. */
const NEVER_SENT = new Set(["authorization", "proxy-authorization", "cookie"]);

/**
 * Places the credentials (RFC 6750 section 2, RFC 7617). The provider's places override whatever the caller wrote
 * there, in any case and percent-encoding; other credentials in headers are dropped.
 */
export function placeCredential({
  provider,
  headers,
  defaults,
  path,
  texts,
  values,
}: CredentialInput): PlacedCredential {
  const places = placesOf(provider);
  const reserved = places.map((place) => (place.kind === "header" ? headerMeant(place.name) : undefined));
  const flat: string[] = [];
  // An array: for so few names, a Set would cost more than comparing them.
  const names: string[] = [];
  const own = provider.hasHeaderTemplates ? filledHeaders(provider, values) : provider.defaultHeaders;
  for (const pairs of [headers, own, defaults]) {
    for (const [name, value] of pairs) {
      const key = headerMeant(name.toLowerCase());
      if (reserved.includes(key) || NEVER_SENT.has(key) || names.includes(key)) continue;
      names.push(key);
      flat.push(name, value);
    }
  }
  let target = path;
  places.forEach((place, at) => {
    const text = texts[at]?.reveal();
    if (place.kind === "query") target = pathWith(target, place.parameter, text);
    else if (text !== undefined) flat.push(place.name, place.scheme === "" ? text : `${place.scheme} ${text}`);
  });
  return placed(flat, target);
}

function placed(headers: readonly string[], path: string): PlacedCredential {
  return { headers, path, toJSON: redacted, [inspect.custom]: redacted };
}

function redacted(): string {
  return "[request with credential]";
}

/** The default headers with values filled in; leaves out those with an unknown or invalid value. */
function filledHeaders({ defaultHeaders }: Provider, values: ValueTexts): HeaderPairs {
  const textOf = textIn(values);
  return defaultHeaders.flatMap(([name, template]) => {
    const value = fillTemplate(template, textOf);
    return value !== undefined && VALUE.test(value) ? [[name, value] as const] : [];
  });
}

/** Sets the parameter. The caller's own one of this name is always removed. */
function pathWith(path: string, parameter: string, text: string | undefined): string {
  const { path: without } = takeParameter(path, parameter);
  if (text === undefined) return without;
  const own = `${parameter}=${encodeURIComponent(text)}`;
  const mark = without.indexOf("?");
  const separator = mark === -1 ? "?" : mark === without.length - 1 ? "" : "&";
  return `${without}${separator}${own}`;
}

/** Removes every parameter of that name from the query of a path; `taken` holds them as written. Pure. */
export function takeParameter(
  path: string,
  parameter: string,
): { readonly path: string; readonly taken: readonly string[] } {
  const mark = path.indexOf("?");
  const parts = mark === -1 ? [] : path.slice(mark + 1).split("&");
  const reserved = parameter.toLowerCase();
  const kept = parts.filter((part) => parameterName(part) !== reserved);
  if (kept.length === parts.length) return { path, taken: [] };
  const rest = kept.length === 0 ? "" : `?${kept.join("&")}`;
  return { path: path.slice(0, mark) + rest, taken: parts.filter((part) => parameterName(part) === reserved) };
}

/**
 * The name in `name=value`, lower-case and percent-decoded as servers do. Names of credentials are ASCII, so it decodes
 * bytes.
 */
function parameterName(part: string): string {
  const equals = part.indexOf("=");
  const name = equals === -1 ? part : part.slice(0, equals);
  const decoded = name.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return decoded.toLowerCase();
}

/** A caller's headers after decideHeaders(). */
interface DecidedHeaders {
  /** Headers for the provider, with names as written; no name occurs twice. */
  readonly forwarded: HeaderPairs;
  /** `x-payload-type`, not forwarded. */
  readonly payloadType: string | undefined;
}

/** Most headers a call may carry (threats H20). */
const MAX_HEADERS = 64;
/** Most characters of all names and values together; common servers accept this much. */
const MAX_HEADER_LENGTH = 8192;

/** Begins with a letter or digit: `__proto__` is a member of every object, and no API has such a field. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const VALUE = /^[\t\x20-\x7e]*$/;
const PAYLOAD_TYPE = "x-payload-type";
/** Meant for the relay itself, never forwarded. */
const CONSUMED = new Set(["x-pinc-response-data-at", PAYLOAD_TYPE]);

/**
 * Fields that a caller may not set (RFC 9110 section 7.6.1; threats H01-H22). They are dropped, not refused. Only the
 * relay knows which encodings it can decode, and x-partner-key holds the application's own private key.
 */
const DROPPED = new Set(
  `authorization host content-length transfer-encoding connection keep-alive te trailer upgrade http2-settings expect
   max-forwards cookie cookie2 set-cookie set-cookie2 forwarded via x-real-ip x-client-ip x-cluster-client-ip
   true-client-ip x-rewrite-url x-http-method x-method-override x-http-method-override origin referer
   accept-encoding x-partner-key`.split(/\s+/),
);
const DROPPED_PREFIX = /^(?:proxy|x-forwarded|x-original|x-envoy|cf|sec)-/;

/**
 * Decides which of a caller's headers go to the provider.
 *
 * Throws CALL_FORMAT_ERROR for a name that is not made of letters, digits, `-` and `_`, for a value with control or
 * non-ASCII characters, for a name given twice in any case, and for more than 64 headers or 8 KiB in total.
 */
export function decideHeaders(pairs: HeaderPairs): DecidedHeaders {
  if (pairs.length > MAX_HEADERS) throw formatError(`headers has more than ${MAX_HEADERS} fields; send fewer.`);
  const forwarded: Array<readonly [string, string]> = [];
  const seen = new Map<string, string>();
  let length = 0;
  for (const [name, value] of pairs) {
    checkField(name, value);
    length += name.length + value.length;
    const meant = headerMeant(name.toLowerCase());
    if (isDroppedHeader(meant)) continue;
    if (seen.has(meant)) throw formatError(`headers contains ${name} twice; send it once.`);
    seen.set(meant, value.trim());
    if (!CONSUMED.has(meant)) forwarded.push([name, value.trim()]);
  }
  if (length > MAX_HEADER_LENGTH) throw headersTooLong();
  return { forwarded, payloadType: seen.get(PAYLOAD_TYPE) };
}

/** Error for headers that are longer than {@link decideHeaders} allows. */
export function headersTooLong(): RelayError {
  return formatError("headers is longer than 8 KiB in total; send less.");
}

/**
 * The header that servers may take a lower-case name for: CGI (RFC 3875 section 4.1.18) and everything modelled on it
 * treats `content_length` like `content-length`.
 */
export function headerMeant(name: string): string {
  return name.includes("_") ? name.replaceAll("_", "-") : name;
}

/** The first header that means this one, if there is any. @param wanted lower-case. */
export function findHeader(headers: HeaderPairs, wanted: string): HeaderPairs[number] | undefined {
  return headers.find(([name]) => headerMeant(name.toLowerCase()) === wanted);
}

/** Whether a caller may never set a header. @param name lower-case. */
export function isDroppedHeader(name: string): boolean {
  return DROPPED.has(name) || DROPPED_PREFIX.test(name);
}

function checkField(name: string, value: string): void {
  if (!NAME.test(name)) {
    throw formatError(
      "headers contains a name that is not 1 to 64 letters, digits, '-' and '_', starting with a letter or digit; correct it.",
    );
  }
  if (!VALUE.test(value)) {
    throw formatError(`headers.${name} contains a character that is not printable ASCII; encode or remove it.`);
  }
}

/** Default headers that only describe the client and its wishes; any other may hold a key, whatever its name. */
const HARMLESS =
  /^(?:accept(?:-charset|-language)?|cache-control|prefer|user-agent|version|revision|[a-z0-9-]+-version)$/;

/** Whether a default header of this name may hold a key of the operator. Pure. @param name lower-case. */
export function mayHoldKey(name: string): boolean {
  return !HARMLESS.test(name);
}

/** Whether a request field comes from the definition, rather than the caller, and may hold a key. Pure. */
export function isKeyField({ defaultHeaders }: Provider, field: string, sent: string): boolean {
  const lower = field.toLowerCase();
  return defaultHeaders.some(([name, value]) => name === lower && value === sent && mayHoldKey(name));
}

type MemberSignal = Extract<ExpirySignal, { readonly member: string }>;

/** Bytes of an answer that are searched for a sign that the token was refused: errors are shorter. */
export const MAX_SIGNAL_BYTES = 64 * 1024;

/**
 * Whether an answer of the provider's API means that the access token is no longer valid, by the provider's
 * `expirySignals`. A plain 401 needs no signal and is not handled here. The body is parsed only where a signal of that
 * status names a member of it.
 *
 * @param isPastLifetime whether the token may have expired by its own lifetime, for signals that require it.
 */
export function isExpirySignal(provider: Provider, statusCode: number, body: Bytes, isPastLifetime: boolean): boolean {
  const signals = provider.expirySignals.filter(
    (signal) => signal.statusCode === statusCode && (isPastLifetime || !signal.pastLifetime),
  );
  const byMember = signals.filter((signal): signal is MemberSignal => signal.member !== undefined);
  if (byMember.length < signals.length) return true;
  if (byMember.length === 0 || body.length > MAX_SIGNAL_BYTES) return false;
  const text = body.concat();
  return isJson(text) && byMember.some((signal) => isInBody(signal, text));
}

/** Whether the body of an answer with this status must be read to see whether it is an expiry signal. */
export function asksForBody(provider: Provider, statusCode: number): boolean {
  return provider.expirySignals.some((signal) => signal.statusCode === statusCode && signal.member !== undefined);
}

function isInBody({ member, values }: MemberSignal, body: Uint8Array): boolean {
  const range = slicePath(body, member);
  if (range === undefined) return false;
  const kind = kindAt(body, range.start);
  return kind !== "object" && kind !== "array" && values.has(textAt(body, range));
}

/** Tokens by placeholder; undefined where the connection has none. */
export interface PlaceholderTokens {
  readonly access_token: string | undefined;
  readonly id_token: string | undefined;
}

/** Braces as written in a query, or percent-encoded as the URL standard does in a path. */
const PLACEHOLDER = /(?:\{\{|%7B%7B)(access_token|id_token)(?:\}\}|%7D%7D)/g;

/**
 * Refuses a path with a placeholder for a token that the connection does not have, before any token is opened.
 *
 * Throws CALL_FORMAT_ERROR.
 */
export function requirePlaceholders(path: string, provider: Provider, has: { readonly id_token: boolean }): void {
  fillPlaceholders(path, provider, { access_token: "", id_token: has.id_token ? "" : undefined });
}

/**
 * Replaces `{{access_token}}` and `{{id_token}}` in an allowed path, percent-encoded, if the provider's definition
 * lists them. Anything else is left unchanged. The origin is already decided and cannot be affected.
 *
 * Throws CALL_FORMAT_ERROR when the connection has no id token.
 */
export function fillPlaceholders(path: string, provider: Provider, tokens: PlaceholderTokens): string {
  if (provider.urlPlaceholders.size === 0) return path;
  return path.replace(PLACEHOLDER, (placeholder, name: keyof PlaceholderTokens) => {
    if (!provider.urlPlaceholders.has(name)) return placeholder;
    const token = tokens[name];
    if (token === undefined) {
      throw formatError(`url contains {{${name}}}, but this connection has none; remove it.`);
    }
    return encodeURIComponent(token);
  });
}
