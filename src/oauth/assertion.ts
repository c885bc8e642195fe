import { createPrivateKey, randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import type { ValueTexts } from "../providers/connection-value.js";
import { type Assertion, KEY_VALUES } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import { filledParameters } from "./connection-values.js";

/** A signed assertion and its expiry, in seconds since the epoch. */
export interface SignedAssertion {
  readonly assertion: Secret;
  readonly expiresAtS: number;
}

/** How far the provider's clock may lag behind ours, in seconds: `iat` is set back by this much. */
const CLOCK_LEEWAY_S = 30;

/**
 * Signs a JWT assertion (RFC 7523 section 3). Rejects when the key is missing or does not fit the algorithm, which
 * happens when the connection was stored under a different definition.
 *
 * @param texts values for the templates; a member whose value is missing is left out.
 * @param now milliseconds since the epoch.
 */
export async function signAssertion(
  { algorithm, header, claims, lifetimeSeconds, jti }: Assertion,
  key: Secret | undefined,
  texts: ValueTexts,
  now: number,
): Promise<SignedAssertion> {
  if (key === undefined) throw new TypeError("There is no key to sign with.");
  const iat = Math.floor(now / 1000) - CLOCK_LEEWAY_S;
  const exp = iat + lifetimeSeconds;
  const payload = { ...known(claims, texts), iat, exp, ...(jti && { jti: randomUUID() }) };
  const signer = new SignJWT(payload).setProtectedHeader({ ...known(header, texts), typ: "JWT", alg: algorithm });
  const assertion = new Secret(await signer.sign(keyFrom(key, algorithm)));
  return { assertion, expiresAtS: exp };
}

function known(members: Assertion["claims"], texts: ValueTexts): Record<string, string> {
  return Object.fromEntries(Object.entries(filledParameters(members, texts)).filter(([, text]) => text !== ""));
}

function keyFrom(key: Secret, algorithm: Assertion["algorithm"]) {
  if (algorithm === "HS256") return Buffer.from(key.reveal(), "hex");
  return createPrivateKey({ key: Buffer.from(key.reveal(), "base64"), format: "der", type: "pkcs8" });
}

/** Values that may go into requests: all except the key, which is only used to sign. */
export function withoutKey({ [KEY_VALUES.key]: _key, ...texts }: ValueTexts): ValueTexts {
  return texts;
}
