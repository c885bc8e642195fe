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
export function withoutDataUrlPrefix(text: string): string {
  const prefix = DATA_URL.exec(text.slice(0, 300))?.[0] ?? "";
  return text.slice(prefix.length);
}
