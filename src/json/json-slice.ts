import { type Bytes, createChunks, createPace, SLICE_BYTES } from "../lib/chunks.js";
import { atOnce, type Steps } from "../lib/turns.js";
import { isClosing, type JsonRange, ValueScan } from "./json-scan.js";
import { type JsonLimits, validateJson } from "./json-validator.js";
import { textSlices } from "./text-slices.js";

/** A member of an object: its decoded name, and the range of its value without the whitespace around it. */
export interface JsonMember extends JsonRange {
  readonly key: string;
}

/** What a JSON value is. */
export type JsonKind = "object" | "array" | "string" | "number" | "true" | "false" | "null";

/** ASCII without escapes. */
const PLAIN = /^[\x20-\x5b\x5d-\x7f]*$/;
const QUOTE = 0x22;
const OPENING_BRACE = 0x7b;

/** First byte of a value → its kind; any other byte begins a number. */
const KINDS: ReadonlyMap<number | undefined, JsonKind> = new Map([
  [0x7b, "object"],
  [0x5b, "array"],
  [0x22, "string"],
  [0x74, "true"],
  [0x66, "false"],
  [0x6e, "null"],
]);

/** The kind of the value at `start` of valid JSON; whitespace before it is skipped. */
export function kindAt(bytes: Uint8Array, start = 0): JsonKind {
  return KINDS.get(bytes[spaceEnd(bytes, start)]) ?? "number";
}

/** Whether the object or array at `start` of valid JSON has nothing in it. */
export function isEmptyAt(bytes: Uint8Array, start = 0): boolean {
  return isClosing(bytes[spaceEnd(bytes, spaceEnd(bytes, start) + 1)]);
}

/** Index of the first byte from `from` on that is not white space. */
function spaceEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && (bytes[at] as number) <= 0x20) at++;
  return at;
}

/**
 * The members of the object in `start` … `end` of valid JSON, in the order written, repeated names included. Empty for
 * a value that is not an object.
 *
 * @param latin1 as in {@link textAt}.
 */
export function sliceMembers(bytes: Uint8Array, start = 0, end: number = bytes.length, latin1?: string): JsonMember[] {
  return atOnce(membersInSteps(bytes, start, end, latin1));
}

/** The elements of the array in `start` … `end` of valid JSON. Empty for a value that is not an array. */
export function sliceElements(bytes: Uint8Array, start = 0, end: number = bytes.length): JsonRange[] {
  const elements: JsonRange[] = [];
  if (kindAt(bytes, start) !== "array") return elements;
  for (const element of elementsInSteps(bytes, { start, end }))
    if (element !== undefined) elements.push({ ...element });
  return elements;
}

/**
 * The decoded text of a string in valid JSON; any other value as written.
 *
 * @param latin1 `bytes` as latin1 text, if available: slicing it takes a tenth of the time of decoding.
 */
export function textAt(bytes: Uint8Array, { start, end }: JsonRange, latin1?: string): string {
  const plain = latin1?.slice(start + 1, end - 1);
  if (plain !== undefined && bytes[start] === QUOTE && PLAIN.test(plain)) return plain;
  const written = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start);
  if (kindAt(bytes, start) !== "string") return written.toString();
  if (written.includes(0x5c)) return JSON.parse(written.toString()) as string;
  return written.toString("utf8", 1, written.length - 1);
}

/** Most bytes of a string that {@link shortTextAt} decodes. */
const MAX_SHORT_BYTES = 128 * 1024;

/**
 * {@link textAt} for a string that is refused when it is long. Of more than 128 KiB only the beginning is decoded, at
 * least 21,840 characters: to decode 10 MiB takes a tenth of a second.
 */
export function shortTextAt(bytes: Uint8Array, string: JsonRange, latin1?: string): string {
  if (string.end - string.start <= MAX_SHORT_BYTES) return textAt(bytes, string, latin1);
  return textSlices(bytes, string, MAX_SHORT_BYTES).next().value ?? "";
}

/** Parses a JSON object within limits; undefined for anything else, and when any object in it repeats a name. */
export function uniqueObjectFrom(bytes: Uint8Array, limits: JsonLimits): Readonly<Record<string, unknown>> | undefined {
  const value = validateJson(bytes, limits) === "valid" ? uniqueValueFrom(bytes) : undefined;
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

/** Parses valid JSON; undefined when an object in it repeats a name, since readers differ in which member they take. */
function uniqueValueFrom(bytes: Uint8Array, { start, end }: JsonRange = { start: 0, end: bytes.length }): unknown {
  const kind = kindAt(bytes, start);
  if (kind === "array") {
    const elements = sliceElements(bytes, start, end).map((element) => uniqueValueFrom(bytes, element));
    return elements.includes(undefined) ? undefined : elements;
  }
  if (kind !== "object") return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString());
  const members = new Map<string, unknown>();
  for (const member of sliceMembers(bytes, start, end)) {
    const value = uniqueValueFrom(bytes, member);
    if (value === undefined || members.has(member.key)) return undefined;
    members.set(member.key, value);
  }
  return Object.fromEntries(members);
}

/** Most elements between two pauses: handling a short element takes longer than scanning it. */
const MAX_ELEMENTS = 2048;

/** {@link sliceMembers} in steps. */
export function* membersInSteps(
  bytes: Uint8Array,
  start = 0,
  end: number = bytes.length,
  latin1?: string,
): Steps<JsonMember[]> {
  const members: JsonMember[] = [];
  const scan = new ValueScan(bytes, end);
  scan.begin(start);
  while (!scan.skip(SLICE_BYTES)) yield;
  if (bytes[scan.at] !== OPENING_BRACE) return members;
  const mayPause = createPace(scan.at);
  for (scan.begin(scan.at + 1); ; scan.begin()) {
    while (!scan.goOn(SLICE_BYTES)) yield;
    if (scan.isOver) return members;
    const name = { start: scan.start, end: scan.at };
    const key = name.end - name.start > SLICE_BYTES ? yield* longText(bytes, name) : textAt(bytes, name, latin1);
    scan.begin();
    while (!scan.goOn(SLICE_BYTES)) yield;
    members.push({ key, start: scan.start, end: scan.at });
    if (mayPause(scan.at)) yield;
  }
}

function* longText(bytes: Uint8Array, range: JsonRange): Steps<string> {
  let text = "";
  for (const slice of textSlices(bytes, range)) {
    text += slice;
    yield;
  }
  return text;
}

/**
 * Iterates over the elements of an array of valid JSON, without a list, since there may be a million. Yields undefined
 * when it is time to pause, between two elements or within a long one.
 *
 * @param array where the array is in `bytes`.
 * @returns ranges, each valid until the next iteration.
 */
export function* elementsInSteps(
  bytes: Uint8Array,
  array: JsonRange,
): Generator<JsonRange | undefined, void, undefined> {
  const scan = new ValueScan(bytes, array.end);
  const element = { start: 0, end: 0 };
  const mayPause = createPace(array.start);
  let untilPause = MAX_ELEMENTS;
  scan.begin(array.start);
  while (!scan.skip(SLICE_BYTES)) yield;
  for (scan.begin(scan.at + 1); ; scan.begin()) {
    while (!scan.goOn(SLICE_BYTES)) yield;
    if (scan.isOver) return;
    element.start = scan.start;
    element.end = scan.at;
    yield element;
    untilPause--;
    if (mayPause(element.end) || untilPause <= 0) {
      untilPause = MAX_ELEMENTS;
      yield;
    }
  }
}

/** Base64 characters for three bytes (RFC 4648 section 4). */
const GROUP = 4;

/**
 * {@link bytesFromBase64} for a string of valid JSON, in steps.
 *
 * @param mayBeDataUrl whether to strip a data URL prefix.
 */
export function* base64FromJson(json: Uint8Array, string: JsonRange, mayBeDataUrl = true): Steps<Bytes | undefined> {
  const bytes = createChunks();
  let rest: string | undefined;
  for (const slice of textSlices(json, string)) {
    const encoded = rest === undefined && mayBeDataUrl ? withoutDataUrlPrefix(slice) : (rest ?? "") + slice;
    // The last group is held back, since padding may occur only at the very end.
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

/** Decodes whole groups without padding; undefined for anything else. */
function groupsFrom(encoded: string): Buffer | undefined {
  const bytes = bytesFromBase64(encoded);
  return bytes?.length === (encoded.length / GROUP) * 3 ? bytes : undefined;
}

/** The prefix that browsers add when they read a file as a data URL (RFC 2397). */
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
  // Buffer skips characters that are not base64, and of wide characters uses only the low byte. In ASCII each skipped
  // character makes the result shorter, so comparing lengths checks the whole text natively.
  if (Buffer.byteLength(encoded) !== encoded.length) return undefined;
  const bytes = Buffer.from(encoded, "base64");
  return bytes.length === Math.floor((digits * 3) / 4) ? bytes : undefined;
}

/** The base64 of a data URL; any other text unchanged. */
function withoutDataUrlPrefix(text: string): string {
  const prefix = DATA_URL.exec(text.slice(0, 300))?.[0] ?? "";
  return text.slice(prefix.length);
}
