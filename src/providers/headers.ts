import { formatError } from "../model/errors.js";
import type { HeaderPairs, Provider } from "./provider.js";

/** A caller's headers, judged. */
interface DecidedHeaders {
  /** What goes to the provider, names as written, no name twice. */
  readonly forwarded: HeaderPairs;
  /** `x-pinc-response-data-at`, consumed: which part of the envelope the JSON route answers with. */
  readonly responseDataAt: string | undefined;
  /** `x-payload-type`, consumed. */
  readonly payloadType: string | undefined;
}

/** Most headers a call may carry (threats H20). */
const MAX_HEADERS = 64;
/** Most characters of all names and values together: what common servers take. */
const MAX_HEADER_LENGTH = 8192;

/** Letters first: `__proto__` is a member of every object, and no field of any API. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const VALUE = /^[\t\x20-\x7e]*$/;
const RESPONSE_DATA_AT = "x-pinc-response-data-at";
const PAYLOAD_TYPE = "x-payload-type";

/** Fields that are not the caller's to set (RFC 9110 section 7.6.1; threats H01-H22); dropped, not errors. */
const DROPPED = new Set([
  "authorization",
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
  "http2-settings",
  "expect",
  "max-forwards",
  "cookie",
  "cookie2",
  "set-cookie",
  "set-cookie2",
  "forwarded",
  "via",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "true-client-ip",
  "x-rewrite-url",
  "x-http-method",
  "x-method-override",
  "x-http-method-override",
  "origin",
  "referer",
  // The relay decides which encodings it can undo.
  "accept-encoding",
  // The application's own private key.
  "x-partner-key",
]);
const DROPPED_PREFIX = /^(?:proxy|x-forwarded|x-original|x-envoy|cf|sec)-/;

/**
 * Decides which of a caller's headers go to the provider.
 *
 * Throws CALL_FORMAT_ERROR for a name that is not letters, digits, `-` and `_`, a value with a control character or one
 * outside ASCII, a name given twice in different case, more than 64 headers or 8 KiB in all.
 */
export function decideHeaders(pairs: HeaderPairs): DecidedHeaders {
  if (pairs.length > MAX_HEADERS) throw formatError(`headers holds more than ${MAX_HEADERS} members; send fewer.`);
  const forwarded: Array<readonly [string, string]> = [];
  const seen = new Map<string, string>();
  let length = 0;
  for (const [name, value] of pairs) {
    checkField(name, value);
    length += name.length + value.length;
    const key = name.toLowerCase();
    const meant = headerMeant(key);
    if (isDroppedHeader(meant)) continue;
    if (seen.has(meant)) throw formatError(`headers names ${name} twice; send it once.`);
    seen.set(meant, value.trim());
    if (key !== RESPONSE_DATA_AT && key !== PAYLOAD_TYPE) forwarded.push([name, value.trim()]);
  }
  if (length > MAX_HEADER_LENGTH) throw formatError("headers is longer than 8 KiB in all; send less.");
  return { forwarded, responseDataAt: seen.get(RESPONSE_DATA_AT), payloadType: seen.get(PAYLOAD_TYPE) };
}

/**
 * The header, lower-case, that servers may take a name for: CGI (RFC 3875 section 4.1.18) and all that follow it read
 * `content_length` as they read `content-length`.
 */
export function headerMeant(name: string): string {
  return name.includes("_") ? name.replaceAll("_", "-") : name;
}

/** Whether a header, lower-case, is never a caller's to set. */
export function isDroppedHeader(name: string): boolean {
  return DROPPED.has(name) || DROPPED_PREFIX.test(name);
}

function checkField(name: string, value: string): void {
  if (!NAME.test(name)) {
    throw formatError(
      "headers holds a name that is not 1 to 64 letters, digits, '-' and '_', a letter or digit first; correct it.",
    );
  }
  if (!VALUE.test(value)) {
    throw formatError(`headers.${name} holds a character that is not printable ASCII; encode or remove it.`);
  }
}

/** Default headers that say what a client is and wants; any other may hold a key, whatever it is called. */
const HARMLESS =
  /^(?:accept(?:-charset|-language)?|cache-control|prefer|user-agent|version|revision|[a-z0-9-]+-version)$/;

/** Whether a definition's default header of this name may hold a key of the operator's own. Pure. @param name lower-case. */
export function mayHoldKey(name: string): boolean {
  return !HARMLESS.test(name);
}

/** Whether a field of a request is one of the definition's own that may hold a key, not the caller's. Pure. */
export function isKeyField({ defaultHeaders }: Provider, field: string, sent: string): boolean {
  const lower = field.toLowerCase();
  return defaultHeaders.some(([name, value]) => name === lower && value === sent && mayHoldKey(name));
}
