import { isUtf8 } from "node:buffer";

/** A Content-Type field, taken apart (RFC 9110 section 8.3.1). */
export interface MediaType {
  /** `type/subtype`, lower-case, without parameters; empty when the field is missing or not a media type. */
  readonly essence: string;
  /** The charset parameter, lower-case; undefined without one. */
  readonly charset: string | undefined;
}

const ESSENCE = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/;

/** Reads a Content-Type value leniently: providers send many spellings. */
export function parseMediaType(value: string): MediaType {
  const semicolon = value.indexOf(";");
  const essence = (semicolon === -1 ? value : value.slice(0, semicolon)).trim().toLowerCase();
  if (!ESSENCE.test(essence)) return { essence: "", charset: undefined };
  const charset = semicolon === -1 ? undefined : /;\s*charset\s*=\s*"?([^";,\s]+)/i.exec(value)?.[1]?.toLowerCase();
  return { essence, charset };
}

/** `application/json`, `text/json` and everything `+json` (RFC 6839 section 3.1). */
export function isJsonType(essence: string): boolean {
  return essence === "application/json" || essence === "text/json" || essence.endsWith("+json");
}

/** Whether the media type, or a charset beside it, says that the body is text. */
export function isTextType({ essence, charset }: MediaType): boolean {
  return charset !== undefined || essence.startsWith("text/") || essence.endsWith("+xml") || TEXT_TYPES.has(essence);
}

const TEXT_TYPES = new Set([
  "application/xml",
  "application/javascript",
  "application/ecmascript",
  "application/x-www-form-urlencoded",
  "application/x-ndjson",
  "application/yaml",
  "application/toml",
  "application/sql",
  "application/graphql",
]);

/** What decodes text of one charset. */
export type TextDecoding = InstanceType<typeof TextDecoder>;

/** Of the longest one, that of UTF-8. */
export const BYTE_ORDER_MARK_BYTES = 3;

/**
 * Decodes text by byte order mark, then by charset (every label of the Encoding standard), then as UTF-8; bytes that
 * are not UTF-8 and name no known charset are read as windows-1252, as the standard reads latin1. Never throws.
 */
export function decodeText(bytes: Uint8Array, charset: string | undefined): string {
  const declared = decoderForText(bytes, charset);
  const isReadable = declared.encoding !== "utf-8" || isUtf8(bytes);
  return decodeWith(isReadable ? declared : windows1252(), bytes);
}

/** The decoder of a text whose first bytes these are. */
export function decoderForText(start: Uint8Array, charset: string | undefined): TextDecoding {
  return decoderFor(byteOrderMark(start) ?? charset ?? "utf-8") ?? new TextDecoder();
}

/** The decoder of text that only claims to be UTF-8. */
export function windows1252(): TextDecoding {
  return new TextDecoder("windows-1252");
}

/** Whether a charset, or none, says UTF-8 in the words of those who send JSON. */
export function isUtf8Charset(charset: string | undefined): boolean {
  return charset === undefined || charset === "utf-8" || charset === "utf8";
}

/** In two steps: Node.js 20 reads windows-1252 as latin1 when it decodes in one (bytes 0x80 to 0x9f come out wrong). */
function decodeWith(decoder: TextDecoding, bytes: Uint8Array): string {
  return decoder.decode(bytes, { stream: true }) + decoder.decode();
}

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : undefined;
}

function decoderFor(label: string): TextDecoding | undefined {
  try {
    return new TextDecoder(label);
  } catch {
    // RangeError: not a label of the Encoding standard; the caller falls back.
    return undefined;
  }
}
