import { createSecretKey, randomBytes } from "node:crypto";
import type { SealKey } from "../../src/tokens/key-file.js";
import type { Keyring } from "../../src/tokens/keyring.js";
import { createSealer, type Sealer } from "../../src/tokens/seal.js";
import type { SealBinding } from "../../src/tokens/seal-blob.js";

/** A key of its own bytes. */
export function keyForTest(id: string): SealKey {
  return { id, key: createSecretKey(randomBytes(32)) };
}

/** A ring of keys that never changes; the first is the current one. */
export function keyringForTest(...keys: [SealKey, ...SealKey[]]): Keyring {
  return { current: keys[0], find: (id) => keys.find((key) => key.id === id) };
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
