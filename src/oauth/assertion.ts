import { createPrivateKey, randomUUID } from "node:crypto";
import { SignJWT } from "jose";
import type { ValueTexts } from "../providers/connection-value.js";
import { type Assertion, KEY_VALUES } from "../providers/provider.js";
import { Secret } from "../sealing/seal.js";
import { filledParameters } from "./connection-values.js";

/** A signed assertion, and when it ends, in seconds since the epoch. */
export interface SignedAssertion {
  readonly assertion: Secret;
  readonly expiresAtS: number;
}

/** The provider's clock may stand behind ours by so much. */
const CLOCK_LEEWAY_S = 30;

/**
 * Signs a JWT for one token (RFC 7523 section 3). Rejects where the key is none for the algorithm, as it may be of a connection
 * that was stored for another definition.
 *
 * @param texts values for the templates; one that is not among them leaves its member out.
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

/** Texts that may go into requests: all but the key, which nothing but signatures is made of. */
export function withoutKey({ [KEY_VALUES.key]: _key, ...texts }: ValueTexts): ValueTexts {
  return texts;
}
