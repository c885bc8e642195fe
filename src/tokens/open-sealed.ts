import { RelayError } from "../model/errors.js";
import type { Sealer } from "./seal.js";
import { type SealBinding, SealError } from "./seal-blob.js";

/**
 * Opens a sealed value of the store.
 *
 * @param message what the caller is told when it does not open, as RelayError STORE_UNAVAILABLE.
 */
export function openSealed(sealer: Sealer, sealed: Uint8Array, binding: SealBinding, message: string): Buffer {
  try {
    return sealer.open(sealed, binding);
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause;
    throw new RelayError("STORE_UNAVAILABLE", message, { cause });
  }
}
