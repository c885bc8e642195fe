import { openSealed } from "../tokens/open-sealed.js";
import type { Sealer } from "../tokens/seal.js";
import type { SealBinding } from "../tokens/seal-blob.js";
import type { CaptureContent } from "./capture-content.js";
import type { SealedCapture } from "./capture-store.js";

const DOES_NOT_OPEN = "What was captured of this call cannot be opened. The operator must restore the key file.";

type CaptureKey = Pick<SealedCapture, "callId" | "applicationId">;

/** Seals what was captured of a call. */
export function sealCapture(sealer: Sealer, key: CaptureKey, content: CaptureContent): Uint8Array {
  return sealer.seal(JSON.stringify(content), bindingOf(key));
}

/** What was captured, in the clear. Throws RelayError STORE_UNAVAILABLE when it does not open. */
export function openCapture(sealer: Sealer, capture: SealedCapture): CaptureContent {
  const text = openSealed(sealer, capture.content, bindingOf(capture), DOES_NOT_OPEN).toString();
  return JSON.parse(text) as CaptureContent;
}

/** The call's id stands where a token has its user. */
function bindingOf({ callId, applicationId }: CaptureKey): SealBinding {
  return { table: "call_captures", column: "content", applicationId, userId: callId, providerName: "" };
}
