import type { CallerProof, ShownKey } from "./caller.js";

/** What of a request, beside its query or message, says who calls. */
export interface CallerFields {
  /** Every `Authorization` field, as written: node:http keeps the first alone, and a wrong one must not hide behind it. */
  readonly authorization: readonly string[];
  /** Every `x-partner-key` field, as written. */
  readonly partnerKey: readonly string[];
  /** The `Origin` header of a browser. */
  readonly origin: string | undefined;
  /** The client's IP address, after trusted proxies were taken into account. */
  readonly address: string;
}

/** What the query or the message of a request names; empty text is nothing. */
export interface NamedKeys {
  readonly publicKey: string;
  readonly privateKey: string | undefined;
  readonly userSignature: string | undefined;
}

/** The head of a request, of HTTP/1.1 or HTTP/2. */
interface RequestHead {
  readonly headers: Readonly<Record<string, string | string[] | undefined>> & { readonly origin?: string | undefined };
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
}

const NONE: readonly string[] = [];

/** Reads the fields of a request, gRPC metadata among them; the only place that does. */
export function callerFieldsOf({ headers, rawHeaders }: RequestHead, address: string): CallerFields {
  const all = (name: string) => (headers[name] === undefined ? NONE : valuesOf(rawHeaders, name));
  return { authorization: all("authorization"), partnerKey: all("x-partner-key"), origin: headers.origin, address };
}

/** Of a request whose fields prove nothing of an application: an operator's, or none at all. */
export function withoutCallerFields(address: string): CallerFields {
  return { authorization: NONE, partnerKey: NONE, origin: undefined, address };
}

/**
 * Who calls, and every proof that the request shows: a private key in the query or message, in `Authorization: Bearer`
 * and in `x-partner-key: public.private`, which may also stand for the public key. Each of them has to be right.
 */
export function callerFrom(
  { authorization, partnerKey, origin, address }: CallerFields,
  { publicKey, privateKey, userSignature }: NamedKeys,
): { readonly publicKey: string; readonly proof: CallerProof } {
  const partners = partnerKey.map(parsePartnerKey);
  const keys: ShownKey[] = [];
  if (privateKey) keys.push({ place: "private_key", publicKey: undefined, privateKey });
  for (const field of authorization) {
    const shown = bearerFrom(field);
    if (shown) keys.push({ place: "Authorization", publicKey: undefined, privateKey: shown });
  }
  keys.push(...partners);
  return {
    publicKey: publicKey || partners[0]?.publicKey || "",
    proof: { privateKeys: keys, userSignature: userSignature || undefined, origin, address },
  };
}

function valuesOf(rawHeaders: readonly string[], wanted: string): readonly string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted);
}

/**
 * RFC 6750 section 2.1; the scheme's case does not matter (RFC 9110 section 11.1). What stands behind it is a proof
 * whatever its characters are. Another scheme is none of ours: a proxy in front may ask for it.
 */
function bearerFrom(authorization: string): string | undefined {
  return /^Bearer +(.*)$/is.exec(authorization)?.[1];
}

/** The last dot parts the keys: a private key has none, a public key an operator chose may. Without a dot it names nobody. */
function parsePartnerKey(value: string): ShownKey {
  const dot = value.lastIndexOf(".");
  return { place: "x-partner-key", publicKey: value.slice(0, Math.max(dot, 0)), privateKey: value.slice(dot + 1) };
}
