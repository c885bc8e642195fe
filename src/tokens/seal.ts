import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { SealKey } from "./key-file.js";
import type { Keyring } from "./keyring.js";
import {
  associatedData,
  formatSealed,
  IV_BYTES,
  parseSealed,
  type SealBinding,
  SealError,
  TAG_BYTES,
} from "./seal-blob.js";

/** Seals values for the store and opens them again. */
export interface Sealer {
  /** The id of the key that `seal()` uses now. */
  readonly currentKeyId: string;
  seal(plaintext: string | Uint8Array, binding: SealBinding): Uint8Array;
  /** Throws SealError when the value is not what was sealed for this binding, or when its key is missing. */
  open(sealed: Uint8Array, binding: SealBinding): Buffer;
  /** The id of the key a value is sealed under. Throws SealError "corrupt" when it is no sealed value. */
  keyIdOf(sealed: Uint8Array): string;
}

const CIPHER = "aes-256-gcm";

/**
 * AES-256-GCM under the current key of the ring; values under its other keys still open.
 *
 * The IV is random, so one key is good for 2^32 values (NIST SP 800-38D section 8.3): rotate long before.
 */
export function createSealer(keyring: Keyring): Sealer {
  return {
    get currentKeyId() {
      return keyring.current.id;
    },
    seal: (plaintext, binding) => sealUnder(keyring.current, plaintext, binding),
    open(sealed, binding) {
      const { keyId, iv, ciphertext, tag } = parseSealed(sealed);
      const decipher = createDecipheriv(CIPHER, keyOf(keyring, keyId), iv, { authTagLength: TAG_BYTES });
      decipher.setAAD(associatedData(binding, keyId)).setAuthTag(tag);
      const plaintext = decipher.update(ciphertext);
      try {
        decipher.final();
      } catch {
        // What update() gave is not verified; OpenSSL's error says no more than that.
        plaintext.fill(0);
        throw new SealError("corrupt");
      }
      return plaintext;
    },
    keyIdOf: (sealed) => parseSealed(sealed).keyId,
  };
}

function sealUnder({ id, key }: SealKey, plaintext: string | Uint8Array, binding: SealBinding): Uint8Array {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(CIPHER, key, iv, { authTagLength: TAG_BYTES });
  cipher.setAAD(associatedData(binding, id));
  const ciphertext = Buffer.concat([cipher.update(Buffer.from(plaintext)), cipher.final()]);
  return formatSealed({ keyId: id, iv, ciphertext, tag: cipher.getAuthTag() });
}

function keyOf(keyring: Keyring, keyId: string): SealKey["key"] {
  let key: SealKey | undefined;
  try {
    key = keyring.find(keyId);
  } catch (cause) {
    throw new SealError("unknown_key", { cause });
  }
  if (key === undefined) throw new SealError("unknown_key");
  return key.key;
}
