import { createHmac, hkdfSync, type KeyObject } from "node:crypto";
import type { Keyring } from "./keyring.js";

/** Names texts by digests that only the holder of the key file can make: what is stored is found by them, and tells nothing. */
export interface Digests {
  /** Of a text, under the current key; other purposes give others. 16 characters of base64url. */
  digest(purpose: string, text: string): string;
  /** As it may have been stored: under the current key, and under the one before it. */
  digests(purpose: string, text: string): readonly string[];
}

/** 96 bits: no two texts of a relay have the same. In characters of base64url. */
const DIGEST_LENGTH = 16;
const KEY_BYTES = 32;

/** HMAC-SHA256 under keys that are derived (RFC 5869) from those of the file, which themselves seal and nothing else. */
export function createDigests(keyring: Pick<Keyring, "newest">): Digests {
  const derived = new WeakMap<KeyObject, Map<string, Buffer>>();
  function keyFrom(key: KeyObject, purpose: string): Buffer {
    const ofKey = derived.get(key) ?? new Map<string, Buffer>();
    const known = ofKey.get(purpose) ?? Buffer.from(hkdfSync("sha256", key, "", purpose, KEY_BYTES));
    derived.set(key, ofKey.set(purpose, known));
    return known;
  }
  const digestUnder = (key: KeyObject, purpose: string, text: string) =>
    createHmac("sha256", keyFrom(key, purpose)).update(text).digest("base64url").slice(0, DIGEST_LENGTH);
  return {
    digest: (purpose, text) => digestUnder(keyring.newest[0].key, purpose, text),
    digests: (purpose, text) => keyring.newest.map(({ key }) => digestUnder(key, purpose, text)),
  };
}
