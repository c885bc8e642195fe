import { type Bytes, createChunks } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
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

/** What browsers put in front when they read a file as a data URL (RFC 2397). */
const DATA_URL = /^data:[^,]{0,255};base64,/i;

/**
 * Decodes base64 strictly; undefined when the text is anything else.
 *
 * The standard and the URL-safe alphabet (RFC 4648 sections 4 and 5), with or without padding, and with the
 * `data:…;base64,` prefix that browsers produce. No whitespace, no padding in the middle or of the wrong length.
 */
export function bytesFromBase64(text: string): Buffer | undefined {
  const encoded = withoutDataUrlPrefix(text);
  const padding = encoded.endsWith("==") ? 2 : Number(encoded.endsWith("="));
  const digits = encoded.length - padding;
  if (digits % 4 === 1 || (padding > 0 && encoded.length % 4 !== 0)) return undefined;
  // Buffer skips what is not base64 and looks at the low byte of wide characters only. Over ASCII, each skipped
  // character makes the result shorter: a native check of the whole text.
  if (Buffer.byteLength(encoded) !== encoded.length) return undefined;
  const bytes = Buffer.from(encoded, "base64");
  return bytes.length === Math.floor((digits * 3) / 4) ? bytes : undefined;
}

/** The base64 of a data URL; any other text as it is. */
function withoutDataUrlPrefix(text: string): string {
  const prefix = DATA_URL.exec(text.slice(0, 300))?.[0] ?? "";
  return text.slice(prefix.length);
}
