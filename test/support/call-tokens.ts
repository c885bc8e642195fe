import { createHmac } from "node:crypto";

/** What a test writes into a call token, beside or instead of what belongs there. */
export interface TokenParts {
  readonly header?: unknown;
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** Makes a call token as any JWT library does, from RFC 7515 alone. */
export function signCallToken(
  { publicKey, privateKey }: { readonly publicKey: string; readonly privateKey: string },
  { header, claims }: TokenParts = {},
): string {
  const iat = Math.floor(Date.now() / 1000);
  const own = { iss: publicKey, sub: "ada", aud: "provider-call-relay", iat, exp: iat + 900, ...claims };
  return signText(privateKey, JSON.stringify(header ?? { alg: "HS256", typ: "relay-call+jwt" }), JSON.stringify(own));
}

/** The same of any text, for what no library would write. */
export function signText(privateKey: string, header: string | Uint8Array, claims: string | Uint8Array): string {
  const signed = [header, claims].map((part) => Buffer.from(part).toString("base64url")).join(".");
  return `${signed}.${createHmac("sha256", privateKey).update(signed).digest("base64url")}`;
}
