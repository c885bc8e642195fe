import { isUtf8 } from "node:buffer";

/** A parsed Content-Type field (RFC 9110 section 8.3.1). */
export interface MediaType {
  /** `type/subtype`, lower-case, without parameters; empty when the field is missing or not a media type. */
  readonly essence: string;
  /** The charset parameter, lower-case; undefined without one. */
  readonly charset: string | undefined;
}

/** Ends at a comma, which begins a second type, or at white space, where a parameter's semicolon is missing. */
const ESSENCE = /^\s*([\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127})(?:[;,\s]|$)/;
const CHARSET = /[;,\s]charset\s*=\s*"?([^";,\s]+)/i;

/** Parses a Content-Type value leniently, since providers send many spellings. Of two types, the first one counts. */
export function parseMediaType(value: string): MediaType {
  const essence = ESSENCE.exec(value)?.[1]?.toLowerCase();
  if (essence === undefined) return { essence: "", charset: undefined };
  return { essence, charset: CHARSET.exec(value)?.[1]?.toLowerCase() };
}

/** `application/json`, its unregistered older names, and every `+json` type (RFC 6839 section 3.1). */
export function isJsonType(essence: string): boolean {
  return JSON_TYPES.test(essence);
}

/**
 * Types that may carry JSON: JSON itself, scripts, as it used to be served, and no type at all (RFC 9110 section 8.3).
 */
export function mayBeJson({ essence }: MediaType): boolean {
  return essence === "" || isJsonType(essence) || SCRIPT_TYPES.test(essence);
}

/** Whether the media type, or a known charset next to it, says that the body is text. */
export function isTextType({ essence, charset }: MediaType): boolean {
  if (isTextByItself(essence)) return true;
  return charset !== undefined && !BINARY_TYPES.test(essence) && decoderFor(charset, false) !== undefined;
}

/** Whether a media type says that the body is text, whatever its charset. */
export function isTextByItself(essence: string): boolean {
  return TEXT_TYPES.test(essence) || isJsonType(essence) || SCRIPT_TYPES.test(essence);
}

const JSON_TYPES = /^(?:application|text)\/(?:x-)?json$|\+json$/;
const SCRIPT_TYPES = /^(?:application|text)\/(?:x-)?(?:java|ecma)script$/;
const TEXT_TYPES =
  /^text\/|\+(?:xml|yaml|json-seq)$|^application\/(?:x-)?(?:xml|yaml|toml|sql|graphql|csv|ndjson|jsonl|json-?lines|json-seq|www-form-urlencoded)$/;
/** Types that are binary even with a charset: some servers add one to everything. */
const BINARY_TYPES = /^(?:image|audio|video|font)\/|^application\/(?:pdf|zip|octet-stream)$/;

/**
 * Decodes the value of a field: as UTF-8, which providers send, if its bytes are valid, else as latin1 (RFC 9110
 * section 5.5).
 *
 * @param value one character per byte.
 */
export function textFromField(value: string): string {
  if (!BEYOND_ASCII.test(value)) return value;
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString() : value;
}

const BEYOND_ASCII = /[\x80-\xff]/;

/** A decoder of one charset. */
export type TextDecoding = InstanceType<typeof TextDecoder>;

/** Length of the longest byte order mark, that of UTF-8. */
export const BYTE_ORDER_MARK_BYTES = 3;

/**
 * Chooses a text's decoder by its byte order mark, else by its charset. Undefined when there is no byte order mark and
 * the charset is missing or unknown.
 *
 * @param start the first bytes of the text.
 * @param isFatal whether the decoder throws for bytes that are invalid in its charset.
 */
export function decoderForText(
  start: Uint8Array,
  charset: string | undefined,
  isFatal: boolean,
): TextDecoding | undefined {
  return decoderFor(byteOrderMark(start) ?? charset, isFatal);
}

/** Whether a charset means UTF-8, in the spellings that senders of JSON use. A missing charset counts as UTF-8. */
export function isUtf8Charset(charset: string | undefined): boolean {
  return charset === undefined || charset === "utf-8" || charset === "utf8";
}

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : undefined;
}

function decoderFor(label: string | undefined, isFatal: boolean): TextDecoding | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label, { fatal: isFatal });
  } catch {
    // RangeError: the Encoding standard has no such label; the caller falls back.
    return undefined;
  }
}
