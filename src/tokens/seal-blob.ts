import { bufferOf } from "../lib/buffer-of.js";

/** What a sealed value belongs to. It opens only for the same binding: the same row, column, user and provider. */
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
export interface SealedParts {
  readonly keyId: string;
  readonly iv: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly tag: Uint8Array;
}

/** 96 random bits (NIST SP 800-38D section 8.2.2). */
export const IV_BYTES = 12;
/** Node 20 accepts tags of 4 bytes unless it is told otherwise (threats D04). */
export const TAG_BYTES = 16;

const FORMAT_VERSION = 1;
/** Version byte and length of the key id. */
const FIXED_BYTES = 2;

/**
 * Puts a sealed value together: version byte, length of the key id, key id (ASCII), IV, ciphertext, tag.
 */
export function formatSealed({ keyId, iv, ciphertext, tag }: SealedParts): Uint8Array {
  return Buffer.concat([
    Buffer.from([FORMAT_VERSION, keyId.length]),
    Buffer.from(keyId, "latin1"),
    iv,
    ciphertext,
    tag,
  ]);
}

/** Takes a sealed value apart. Throws SealError "corrupt" when it is too short or of an unknown version. */
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
 * The associated data: format version, table, column, application, user, provider and key id, each behind its length
 * as four bytes, so that no two bindings give the same bytes (threats D03).
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
