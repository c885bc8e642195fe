import { createHmac, randomBytes } from "node:crypto";
import { bufferOf } from "../lib/chunks.js";
import type { SignatureMethod } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";

/** The parts of a request that a signature covers. */
export interface SignableRequest {
  readonly method: string;
  /** `https://host[:port]`, lower-case, default port left out. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  /** The body where it is a form (RFC 5849 section 3.4.1.3.1); undefined for any other: it is not covered. */
  readonly form: Uint8Array | undefined;
}

/** A client with its secret, and the token to sign with (RFC 5849 section 1.1). */
export interface SigningCredentials {
  readonly clientId: string;
  /** Undefined counts as empty. */
  readonly clientSecret: Secret | undefined;
  /** Undefined before there is a token. */
  readonly token?: { readonly token: Secret; readonly secret: Secret } | undefined;
}

/** How a provider wants its requests signed. */
export interface SigningHabits {
  readonly signatureMethod: SignatureMethod;
  /** Empty: there is none. */
  readonly realm: string;
}

/** Timestamp and nonce, which make a request unique (RFC 5849 section 3.3). */
export interface Occasion {
  /** Seconds since the epoch. */
  readonly timestamp: number;
  readonly nonce: string;
}

/** A new timestamp and nonce, for one request. @param now milliseconds since the epoch. */
export function occasionAt(now: number): Occasion {
  return { timestamp: Math.floor(now / 1000), nonce: randomBytes(16).toString("hex") };
}

/**
 * Signs a request: returns the credentials that follow `OAuth ` in its Authorization field (RFC 5849 section 3.5.1).
 * Pure.
 *
 * @param more further protocol parameters, such as `oauth_verifier`.
 */
export function signedCredentials(
  request: SignableRequest,
  { clientId, clientSecret, token }: SigningCredentials,
  { signatureMethod, realm }: SigningHabits,
  { timestamp, nonce }: Occasion,
  more: Readonly<Record<string, string>> = {},
): Secret {
  const parameters: Pair[] = [
    ["oauth_consumer_key", clientId],
    ...(token === undefined ? [] : [["oauth_token", token.token.reveal()] as const]),
    ["oauth_signature_method", signatureMethod],
    ["oauth_timestamp", String(timestamp)],
    ["oauth_nonce", nonce],
    ["oauth_version", "1.0"],
    ...Object.entries(more),
  ];
  const encoded = parameters.map(([name, value]): Pair => [name, encodeText(value)]);
  const key = signingKeyOf(clientSecret, token?.secret);
  const signature = signatureOf(signatureMethod, key, () => baseStringOf(request, encoded));
  const pairs: readonly Pair[] = [...encoded, ["oauth_signature", encodeText(signature)]];
  const field = pairs.map(([name, value]) => `${name}="${value}"`).join(", ");
  return new Secret(realm === "" ? field : `realm="${encodeText(realm)}", ${field}`);
}

type Pair = readonly [name: string, value: string];

/** The HMAC key (RFC 5849 section 3.4.2); with PLAINTEXT, the signature itself (section 3.4.4). */
export function signingKeyOf(clientSecret: Secret | undefined, tokenSecret: Secret | undefined): string {
  return `${encodeText(clientSecret?.reveal() ?? "")}&${encodeText(tokenSecret?.reveal() ?? "")}`;
}

/** RFC 5849 sections 3.4.2 and 3.4.4; HMAC-SHA256 differs from HMAC-SHA1 only in the hash. */
function signatureOf(method: SignatureMethod, key: string, baseString: () => string): string {
  if (method === "PLAINTEXT") return key;
  return createHmac(method.slice("HMAC-".length), key).update(baseString()).digest("base64");
}

/** The signature base string (RFC 5849 section 3.4.1). @param protocol the protocol parameters, with encoded values. */
function baseStringOf({ method, origin, path, form }: SignableRequest, protocol: readonly Pair[]): string {
  const mark = path.indexOf("?");
  const uri = origin + (mark === -1 ? path : path.slice(0, mark));
  const pairs = [...pairsOf(mark === -1 ? "" : path.slice(mark + 1)), ...pairsOf(latin1Of(form))];
  const encoded = [...pairs.map(([name, value]): Pair => [encodeBytes(name), encodeBytes(value)]), ...protocol];
  const parameters = encoded.sort(byNameAndValue).map(([name, value]) => `${name}=${value}`);
  return [method.toUpperCase(), uri, parameters.join("&")].map(encodeBytes).join("&");
}

/** Byte order of the encoded text, which is ASCII (RFC 5849 section 3.4.1.3.2). */
function byNameAndValue([name, value]: Pair, [otherName, otherValue]: Pair): number {
  if (name !== otherName) return name < otherName ? -1 : 1;
  return value < otherValue ? -1 : value > otherValue ? 1 : 0;
}

/** Each byte of a body as one character. */
function latin1Of(form: Uint8Array | undefined): string {
  return form === undefined ? "" : bufferOf(form).toString("latin1");
}

/** The pairs of a query or a form, decoded (RFC 5849 section 3.4.1.3.1), each byte as one character. */
function pairsOf(encoded: string): readonly Pair[] {
  return encoded.split("&").flatMap((part): readonly Pair[] => {
    if (part === "") return [];
    const equals = part.indexOf("=");
    const [name, value] = equals === -1 ? [part, ""] : [part.slice(0, equals), part.slice(equals + 1)];
    return [[decodeBytes(name), decodeBytes(value)]];
  });
}

function decodeBytes(text: string): string {
  if (!/[+%]/.test(text)) return text;
  return text
    .replaceAll("+", " ")
    .replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Each byte in the encoding of RFC 5849 section 3.6: all except the unreserved ones of RFC 3986 percent-encoded. */
const ENCODED = Array.from({ length: 256 }, (_, code) => {
  const byte = String.fromCharCode(code);
  return /[\w.~-]/.test(byte) ? byte : `%${code.toString(16).toUpperCase().padStart(2, "0")}`;
});

/** @param bytes each as one character. */
function encodeBytes(bytes: string): string {
  let encoded = "";
  for (let at = 0; at < bytes.length; at++) encoded += ENCODED[bytes.charCodeAt(at)];
  return encoded;
}

function encodeText(text: string): string {
  return encodeBytes(Buffer.from(text).toString("latin1"));
}

/**
 * Names that a server may take for a protocol parameter: some read `.` and a space as `_`, and skip leading symbols.
 */
const PROTOCOL_NAME = /^\W*oauth[_. ]/i;

/** Whether a query or a form holds a protocol parameter of RFC 5849, which callers must not set. Pure. */
export function holdsProtocolParameter(encoded: string | Uint8Array): boolean {
  const text = typeof encoded === "string" ? encoded : latin1Of(encoded);
  return pairsOf(text).some(([name]) => PROTOCOL_NAME.test(name));
}
