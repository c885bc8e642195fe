import { createSecretKey, randomBytes } from "node:crypto";
import type { Keyring, SealKey } from "../../src/sealing/keyring.js";
import { createSealer, type SealBinding, type Sealer } from "../../src/sealing/seal.js";

/** A key of its own bytes. */
export function keyForTest(id: string): SealKey {
  return { id, key: createSecretKey(randomBytes(32)) };
}

/** A ring of keys that never changes; the first is the current one. */
export function keyringForTest(...keys: [SealKey, ...SealKey[]]): Keyring {
  return { current: keys[0], all: keys, find: (id) => keys.find((key) => key.id === id) };
}

/** A sealer with one key of its own. */
export function sealerForTest(id = "k1"): Sealer {
  return createSealer(keyringForTest(keyForTest(id)));
}

/** A complete binding. */
export const BINDING: SealBinding = {
  table: "connections",
  column: "access_token",
  applicationId: "app",
  userId: "user",
  providerName: "github",
};
