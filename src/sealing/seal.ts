import { createCipheriv, createDecipheriv, createHmac, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { bufferOf } from "../lib/chunks.js";
import { RelayError } from "../model/errors.js";
import type { Keyring, SealKey } from "./keyring.js";

/** Seals values for the store and opens them again; also computes digests to find values by without storing them. */
export interface Sealer extends Digests {
  /** The id of the key that `seal()` uses now. */
  readonly currentKeyId: string;
  seal(plaintext: string | Uint8Array, binding: SealBinding): Uint8Array;
  /** Throws SealError when the value was not sealed for this binding, is damaged, or its key is missing. */
  open(sealed: Uint8Array, binding: SealBinding): Buffer;
  /** Reseals a value under the current key; returns the same object if it is already. Throws as `open()` does. */
  reseal(sealed: Uint8Array, binding: SealBinding): Uint8Array;
  /** The id of the key that a value is sealed under. Throws SealError "corrupt" when it is not a sealed value. */
  keyIdOf(sealed: Uint8Array): string;
}

const CIPHER = "aes-256-gcm";

/**
 * Creates a sealer: AES-256-GCM under the current key of the ring; values under its other keys still open.
 *
 * The IV is random, so one key is good for 2^32 values (NIST SP 800-38D section 8.3): rotate long before.
 */
export function createSealer(keyring: Keyring): Sealer {
  const sealer: Sealer = {
    ...createDigests(keyring),
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
        // The output of update() is unverified, so it is wiped. OpenSSL's error says nothing more.
        plaintext.fill(0);
        throw new SealError("corrupt");
      }
      return plaintext;
    },
    reseal: (sealed, binding) =>
      parseSealed(sealed).keyId === keyring.current.id ? sealed : sealer.seal(sealer.open(sealed, binding), binding),
    keyIdOf: (sealed) => parseSealed(sealed).keyId,
  };
  return sealer;
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

/** What a sealed value belongs to. It opens only with the same table, column, application, user and provider. */
export interface SealBinding {
  /** Table and column the value is stored in. */
  readonly table: string;
  readonly column: string;
  /** Empty where a value belongs to no application, user or provider. */
  readonly applicationId: string;
  readonly userId: string;
  readonly providerName: string;
}

/** Why a sealed value does not open: it is not what was written, or its key is not in the key file. */
export type SealErrorReason = "corrupt" | "unknown_key";

/** A sealed value that does not open. The message holds nothing of the value. */
export class SealError extends Error {
  readonly reason: SealErrorReason;

  constructor(reason: SealErrorReason, options?: { cause?: unknown }) {
    super(
      reason === "corrupt" ? "A sealed value is damaged or misplaced." : "A sealed value's key is missing.",
      options,
    );
    this.name = "SealError";
    this.reason = reason;
  }
}

/** The parts of a sealed value; views of its bytes, not copies. */
interface SealedParts {
  readonly keyId: string;
  readonly iv: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly tag: Uint8Array;
}

/** 96 random bits (NIST SP 800-38D section 8.2.2). */
const IV_BYTES = 12;
/** Always passed as `authTagLength`, since Node 20 accepts tags of 4 bytes by default (threats D04). */
const TAG_BYTES = 16;

const FORMAT_VERSION = 1;
/** Version byte and length of the key id. */
const FIXED_BYTES = 2;

/** Encodes a sealed value: version byte, length of the key id, key id (ASCII), IV, ciphertext, tag. */
export function formatSealed({ keyId, iv, ciphertext, tag }: SealedParts): Uint8Array {
  return Buffer.concat([
    Buffer.from([FORMAT_VERSION, keyId.length]),
    Buffer.from(keyId, "latin1"),
    iv,
    ciphertext,
    tag,
  ]);
}

/** Decodes a sealed value. Throws SealError "corrupt" when it is too short or of an unknown version. */
export function parseSealed(sealed: Uint8Array): SealedParts {
  const bytes = bufferOf(sealed);
  const ivAt = FIXED_BYTES + (bytes[1] ?? 0);
  const ciphertextAt = ivAt + IV_BYTES;
  const tagAt = bytes.length - TAG_BYTES;
  if (bytes[0] !== FORMAT_VERSION || ivAt === FIXED_BYTES || tagAt < ciphertextAt) throw new SealError("corrupt");
  return {
    keyId: bytes.toString("latin1", FIXED_BYTES, ivAt),
    iv: bytes.subarray(ivAt, ciphertextAt),
    ciphertext: bytes.subarray(ciphertextAt, tagAt),
    tag: bytes.subarray(tagAt),
  };
}

/**
 * The associated data: format version, table, column, application, user, provider and key id, each prefixed with its
 * length as four bytes, so that no two bindings give the same bytes (threats D03).
 */
export function associatedData(binding: SealBinding, keyId: string): Buffer {
  const { table, column, applicationId, userId, providerName } = binding;
  const fields = [String(FORMAT_VERSION), table, column, applicationId, userId, providerName, keyId];
  let size = 0;
  for (const field of fields) size += 4 + Buffer.byteLength(field);
  const data = Buffer.allocUnsafe(size);
  let at = 0;
  for (const field of fields) {
    const length = data.write(field, at + 4);
    data.writeUInt32BE(length, at);
    at += 4 + length;
  }
  return data;
}

/**
 * Opens a sealed value of the store.
 *
 * @param message of the RelayError STORE_UNAVAILABLE that is thrown when it does not open.
 */
export function openSealed(sealer: Sealer, sealed: Uint8Array, binding: SealBinding, message: string): Buffer {
  try {
    return sealer.open(sealed, binding);
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause;
    throw new RelayError("STORE_UNAVAILABLE", message, { cause });
  }
}

const REDACTED = "[redacted]";

/**
 * A token or key in the clear. It prints, logs and serialises as `[redacted]`; only `reveal()` returns the text.
 *
 * It is a class because a private field is the only place that `util.inspect` with `showHidden`, `JSON.stringify` and
 * structured clone cannot read.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The text itself; only for the code that sends it. */
  reveal(): string {
    return this.#value;
  }

  toJSON(): string {
    return REDACTED;
  }

  toString(): string {
    return REDACTED;
  }

  [inspect.custom](): string {
    return REDACTED;
  }
}

/**
 * Creates a memo of what was opened for objects, or made from what was: each is kept for as long as its object is alive.
 * It is like a WeakMap, but each value is a hidden property of its object, which must be extensible. Minor
 * collections of V8 do not free a value in a WeakMap together with its object, and one that refers to its object only a
 * full collection frees: with another user in each call, minor collections took 12 ms instead of 3.
 */
export function createMemo<Owner extends object, Value>() {
  const key = Symbol("memo");
  type Noted = Owner & { readonly [key]?: Value };
  return {
    // Neither a copy of an object has its value, nor an object of which it is the prototype.
    get: (owner: Owner) => (Object.hasOwn(owner, key) ? (owner as Noted)[key] : undefined),
    set: (owner: Owner, value: Value) =>
      void Object.defineProperty(owner, key, { value, writable: true, configurable: true, enumerable: false }),
  };
}

/**
 * Computes keyed digests of texts, which only the holder of the key file can make. Records can be found by them, but
 * they reveal nothing of the text.
 */
export interface Digests {
  /** The digest of a text under the current key; different for each purpose. 16 characters of base64url. */
  digest(purpose: string, text: string): string;
  /** The digests that may have been stored: under the current key, and under every other one. */
  digests(purpose: string, text: string): readonly string[];
}

/** In characters of base64url: 96 bits, so that collisions between a relay's texts do not occur in practice. */
const DIGEST_LENGTH = 16;
const KEY_BYTES = 32;

/** HMAC-SHA256 under keys derived (RFC 5869) from those of the file, which themselves are only used to seal. */
function createDigests(keyring: Pick<Keyring, "current" | "all">): Digests {
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
    digest: (purpose, text) => digestUnder(keyring.current.key, purpose, text),
    digests: (purpose, text) => keyring.all.map(({ key }) => digestUnder(key, purpose, text)),
  };
}
