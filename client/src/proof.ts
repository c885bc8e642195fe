/** A rule that a request must match for a call token to allow it; a missing member matches everything. */
export interface CallRule {
  readonly methods?: readonly string[];
  readonly hosts?: readonly string[];
  /** `*` is one path segment, `**` any number of them. */
  readonly paths?: readonly string[];
}

/** Content of a new call token, and the private key that signs it. */
export interface NewCallToken {
  readonly publicKey: string;
  readonly privateKey: string;
  readonly userId: string;
  /** Lifetime in seconds. Default: 900; maximum: 86,400. */
  readonly ttlSeconds?: number;
  /** Names of providers. Default: all. */
  readonly providers?: readonly string[];
  /** A call must match one of these rules. Default: any call is allowed. */
  readonly rules?: readonly CallRule[];
}

/** Creates a call token: a JWT signed with HS256 (RFC 7519). Works offline, without a request to the relay. */
export async function createCallToken(token: NewCallToken): Promise<string> {
  const { publicKey, privateKey, userId, ttlSeconds = 900, providers, rules } = token;
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    iss: publicKey,
    sub: userId,
    aud: "provider-call-relay",
    iat,
    exp: iat + ttlSeconds,
    providers,
    rules,
  };
  const parts = [{ alg: "HS256", typ: "relay-call+jwt" }, claims].map((part) =>
    base64UrlFrom(utf8(JSON.stringify(part))),
  );
  const signed = parts.join(".");
  return `${signed}.${base64UrlFrom(await hmac(privateKey, signed))}`;
}

/** Computes the `user_signature` of a user: hex HMAC-SHA256 of the id. Valid as long as the private key. */
export async function signUser(privateKey: string, userId: string): Promise<string> {
  const bytes = await hmac(privateKey, userId);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Standard base64. Works in chunks, since the number of arguments of a function is limited. */
export function base64From(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}

function base64UrlFrom(bytes: Uint8Array): string {
  return base64From(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
}

/** Without the line break that a key has at the end of its file. */
async function hmac(key: string, text: string): Promise<Uint8Array> {
  const raw = utf8(key.trimEnd());
  const imported = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, utf8(text)));
}
