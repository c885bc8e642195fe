import type { StreamRedactor } from "../redaction/redact-stream.js";
import type { CapturedBody } from "./capture-content.js";
import { maskText } from "./mask-text.js";

/** What is kept of a body: enough to see what is wrong with it. */
const MAX_BYTES = 4096;
/** What is looked at: a credential that begins within the text and ends beyond it is masked, too. */
const LOOK_AT_BYTES = 16 * 1024;

/**
 * The beginning of a body, without the secrets that were sent and without what its names call credentials. Pure.
 * Undefined for an empty one.
 *
 * @param body all of it, or at least its first 16 KiB.
 * @param bytes of the whole.
 */
export function captureBody(
  body: Uint8Array,
  { bytes, contentType, redactor }: { bytes: number; contentType: string; redactor: StreamRedactor },
): CapturedBody | undefined {
  if (bytes === 0) return undefined;
  const isWhole = body.length === bytes && bytes <= LOOK_AT_BYTES;
  const redacted = [...redactor.push(body.subarray(0, LOOK_AT_BYTES))];
  // At a cut, what could be the beginning of a secret stays in the redactor.
  if (isWhole) redacted.push(...redactor.end());
  const text = textFrom(Buffer.concat(redacted), isWhole);
  if (text === undefined) return { bytes, text, isCut: true };
  const masked = maskText(text, contentType);
  const kept = cut(masked);
  return { bytes, text: kept, isCut: !isWhole || kept.length < masked.length };
}

/** Undefined for what is no UTF-8 text. */
function textFrom(bytes: Uint8Array, isWhole: boolean): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
    return text.includes("\0") ? undefined : text;
  } catch {
    // Not UTF-8: names cannot be found in it, so nothing of it is kept.
    return undefined;
  }
}

/** Between two characters. */
function cut(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.length <= MAX_BYTES ? text : new TextDecoder().decode(bytes.subarray(0, MAX_BYTES), { stream: true });
}
