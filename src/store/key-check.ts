import type { Sealer } from "../tokens/seal.js";
import { type SealBinding, SealError, type SealErrorReason } from "../tokens/seal-blob.js";
import type { KeyCheck } from "./key-checks.js";

const KNOWN_TEXT = "relay key check";
const BINDING: SealBinding = { table: "key_checks", column: "sealed", applicationId: "", userId: "", providerName: "" };

/** The check of the sealer's current key. */
export function createKeyCheck(sealer: Sealer): KeyCheck {
  return { keyId: sealer.currentKeyId, sealed: sealer.seal(KNOWN_TEXT, BINDING) };
}

/** Whether a check opens: `opens`, or why it does not. */
export function decideKeyCheck({ sealed }: KeyCheck, sealer: Sealer): "opens" | SealErrorReason {
  try {
    return sealer.open(sealed, BINDING).toString() === KNOWN_TEXT ? "opens" : "corrupt";
  } catch (error) {
    if (error instanceof SealError) return error.reason;
    throw error;
  }
}
