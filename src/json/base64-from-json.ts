import { type Bytes, createChunks } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { bytesFromBase64, withoutDataUrlPrefix } from "./base64.js";
import type { JsonRange } from "./json-scan.js";
import { textSlices } from "./text-slices.js";

/** Characters of base64 that are three bytes (RFC 4648 section 4). */
const GROUP = 4;

/**
 * What `bytesFromBase64()` makes of a string of valid JSON, in steps.
 *
 * @param mayBeDataUrl whether a prefix that makes it a data URL may stand in front.
 */
export function* base64FromJson(json: Uint8Array, string: JsonRange, mayBeDataUrl = true): Steps<Bytes | undefined> {
  const bytes = createChunks();
  let rest: string | undefined;
  for (const slice of textSlices(json, string)) {
    const encoded = rest === undefined && mayBeDataUrl ? withoutDataUrlPrefix(slice) : (rest ?? "") + slice;
    // The end stays: padding may stand there alone, and only at the very end.
    const whole = Math.max(0, encoded.length - (encoded.length % GROUP) - GROUP);
    const decoded = groupsFrom(encoded.slice(0, whole));
    if (decoded === undefined) return undefined;
    bytes.push(decoded);
    rest = encoded.slice(whole);
    yield;
  }
  const last = bytesFromBase64(rest ?? "");
  if (last === undefined) return undefined;
  bytes.push(last);
  return bytes;
}

/** Whole groups without padding. */
function groupsFrom(encoded: string): Buffer | undefined {
  const bytes = bytesFromBase64(encoded);
  return bytes?.length === (encoded.length / GROUP) * 3 ? bytes : undefined;
}
