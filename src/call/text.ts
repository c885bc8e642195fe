import { isUtf8 } from "node:buffer";

/** A Content-Type field, taken apart (RFC 9110 section 8.3.1). */
export interface MediaType {
  /** `type/subtype`, lower-case, without parameters; empty when the field is missing or not a media type. */
  readonly essence: string;
  /** The charset parameter, lower-case; undefined without one. */
  readonly charset: string | undefined;
}

/** A comma begins a second type, and white space parameters whose semicolon is missing. */
const ESSENCE = /^\s*([\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127})(?:[;,\s]|$)/;
const CHARSET = /[;,\s]charset\s*=\s*"?([^";,\s]+)/i;

/** Reads a Content-Type value leniently: providers send many spellings. Of two types on one line the first one counts. */
export function parseMediaType(value: string): MediaType {
  const essence = ESSENCE.exec(value)?.[1]?.toLowerCase();
  if (essence === undefined) return { essence: "", charset: undefined };
  return { essence, charset: CHARSET.exec(value)?.[1]?.toLowerCase() };
}

/** `application/json`, what it was called before it was registered, and everything `+json` (RFC 6839 section 3.1). */
export function isJsonType(essence: string): boolean {
  return JSON_TYPES.test(essence);
}

/** Types under which JSON is sent, too: scripts, as it was once fetched, and none at all (RFC 9110 section 8.3). */
export function mayBeJson({ essence }: MediaType): boolean {
  return essence === "" || isJsonType(essence) || SCRIPT_TYPES.test(essence);
}

/** Whether the media type, or a charset that is known beside it, says that the body is text. */
export function isTextType({ essence, charset }: MediaType): boolean {
  if (isTextByItself(essence)) return true;
  return charset !== undefined && !BINARY_TYPES.test(essence) && decoderFor(charset, false) !== undefined;
}

/** Whether a media type says that the body is text, whatever stands beside it. */
export function isTextByItself(essence: string): boolean {
  return TEXT_TYPES.test(essence) || isJsonType(essence) || SCRIPT_TYPES.test(essence);
}

const JSON_TYPES = /^(?:application|text)\/(?:x-)?json$|\+json$/;
const SCRIPT_TYPES = /^(?:application|text)\/(?:x-)?(?:java|ecma)script$/;
const TEXT_TYPES =
  /^text\/|\+(?:xml|yaml|json-seq)$|^application\/(?:x-)?(?:xml|yaml|toml|sql|graphql|csv|ndjson|jsonl|json-?lines|json-seq|www-form-urlencoded)$/;
/** Types that a charset does not make text: servers add one to whatever they send. */
const BINARY_TYPES = /^(?:image|audio|video|font)\/|^application\/(?:pdf|zip|octet-stream)$/;

/**
 * The value of a field as text: UTF-8 where its bytes are that, as providers send it, and latin1 where they are not
 * (RFC 9110 section 5.5).
 *
 * @param value each character is a byte.
 */
export function textFromField(value: string): string {
  if (!BEYOND_ASCII.test(value)) return value;
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString() : value;
}

const BEYOND_ASCII = /[\x80-\xff]/;

/** What decodes text of one charset. */
export type TextDecoding = InstanceType<typeof TextDecoder>;

/** Of the longest one, that of UTF-8. */
export const BYTE_ORDER_MARK_BYTES = 3;

/**
 * The decoder of a text whose first bytes these are; undefined where neither a byte order mark nor a known charset
 * says which.
 *
 * @param isFatal whether it fails for bytes that are not of its charset.
 */
export function decoderForText(
  start: Uint8Array,
  charset: string | undefined,
  isFatal: boolean,
): TextDecoding | undefined {
  return decoderFor(byteOrderMark(start) ?? charset, isFatal);
}

/** Whether a charset, or none, says UTF-8 in the words of those who send JSON. */
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
    // RangeError: not a label of the Encoding standard; the caller falls back.
    return undefined;
  }
}
