import type { JsonRange } from "../json/json-scan.js";
import {
  elementsInSteps,
  type JsonMember,
  kindAt,
  membersInSteps,
  sliceElements,
  sliceMembers,
  textAt,
} from "../json/json-slice.js";
import { textSlices } from "../json/text-slices.js";
import { type Chunks, createChunks, createPace, joinedInSteps, SLICE_BYTES } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { formatError } from "../model/errors.js";
import { type Room, requireRoom } from "./budget.js";
import { parseMediaType } from "./text.js";

/** Media type of an HTML form (URL standard, section 5). */
export const URLENCODED = "application/x-www-form-urlencoded";

/**
 * Writes the members of a JSON object as a urlencoded body, in the order given, by the rules of `queryFromJson()`:
 * arrays of scalars are joined with commas, other arrays and objects become JSON text. A space is `+`, as in forms.
 *
 * Fails with CALL_FORMAT_ERROR for a name that is too long and for repeated names that are too long in total, with
 * OVERLOADED where there is no room.
 *
 * @param memory charged for the bytes as they are written: at most three times the length of the JSON, except for
 *   repeated names.
 * @param explodeArrays makes each element of an array a pair of its own.
 */
export function* formFromJson(json: Uint8Array, memory: Room, explodeArrays = false): Steps<Buffer> {
  const form = new FormWriter(memory);
  const mayPause = createPace();
  for (const [index, member] of (yield* membersInSteps(json)).entries()) {
    const isArray = kindAt(json, member.start) === "array";
    const field = fieldOf(member.key, index);
    const name = encode(requireShortName(member.key, field));
    if (isArray && explodeArrays) {
      yield* writeElements(form, json, member, name, field);
      continue;
    }
    form.begin(name);
    if (isArray) yield* writeArray(form, json, member);
    else yield* writeValue(form, json, member);
    if (mayPause(member.end)) yield;
  }
  return yield* joinedInSteps(form.end());
}

/** Whether a content-type header says urlencoded, whatever its parameters. */
export function isUrlencoded(contentType: string | undefined): boolean {
  return contentType !== undefined && parseMediaType(contentType).essence === URLENCODED;
}

/** Writes one pair per element. */
function* writeElements(
  form: FormWriter,
  json: Uint8Array,
  array: JsonRange,
  name: string,
  field: string,
): Steps<void> {
  const mayPause = createPace(form.length);
  for (const element of elementsInSteps(json, array)) {
    if (element === undefined) {
      yield;
      continue;
    }
    form.repeat(name, field);
    yield* writeValue(form, json, element);
    if (mayPause(form.length)) yield;
  }
}

function* writeValue(form: FormWriter, json: Uint8Array, value: JsonRange): Steps<void> {
  if (isLong(value)) yield* writeLong(form, json, value);
  else form.add(textFromValue(json, value));
}

function* writeArray(form: FormWriter, json: Uint8Array, member: JsonMember): Steps<void> {
  if (!(yield* hasScalarsOnly(json, member))) {
    yield* writeLong(form, json, member);
    return;
  }
  let separator = "";
  for (const element of elementsInSteps(json, member)) {
    if (element === undefined) {
      yield;
      continue;
    }
    form.add(separator);
    yield* writeValue(form, json, element);
    separator = ",";
  }
}

function* hasScalarsOnly(json: Uint8Array, array: JsonRange): Steps<boolean> {
  for (const element of elementsInSteps(json, array)) {
    if (element === undefined) yield;
    else if (!isScalar(json, element)) return false;
  }
  return true;
}

function isLong({ start, end }: JsonRange): boolean {
  return end - start > SLICE_BYTES;
}

function* writeLong(form: FormWriter, json: Uint8Array, value: JsonRange): Steps<void> {
  for (const slice of textSlices(json, value)) {
    form.add(slice);
    yield;
  }
}

/** Encodes text piece by piece; no piece may end within a surrogate pair. */
class FormWriter {
  readonly #form: Chunks = createChunks();
  readonly #memory: Room;
  #encoded = "";
  #text = "";
  #repeatedLength = 0;

  constructor(memory: Room) {
    this.#memory = memory;
  }

  /** Bytes written so far, plus encoded characters that are still buffered. */
  get length(): number {
    return this.#form.length + this.#encoded.length;
  }

  /** Begins a pair; the name is already encoded. */
  begin(name: string): void {
    this.#encodeText();
    const mark = this.length === 0 ? "" : "&";
    this.#encoded += `${mark}${name}=`;
    this.#flush();
  }

  /**
   * Begins a pair of an array, whose name is repeated for each element. Fails with CALL_FORMAT_ERROR, which names the
   * field, when the names of all arrays of the form become too long.
   */
  repeat(name: string, field: string): void {
    this.#repeatedLength += name.length;
    if (this.#repeatedLength > MAX_REPEATED_LENGTH) {
      throw formatError(
        `${field} makes the repeated names too long in total. Shorten the names, or send fewer elements.`,
      );
    }
    this.begin(name);
  }

  /** Appends to the value of the current pair. */
  add(text: string): void {
    this.#text += text;
    if (this.#text.length < MAX_WAITING) return;
    this.#encodeText();
    this.#flush();
  }

  end(): Chunks {
    this.#encodeText();
    this.#push();
    return this.#form;
  }

  #encodeText(): void {
    if (this.#text !== "") this.#encoded += encode(this.#text);
    this.#text = "";
  }

  #flush(): void {
    if (this.#encoded.length >= MAX_WAITING) this.#push();
  }

  #push(): void {
    requireRoom(this.#memory, this.#encoded.length);
    this.#form.push(Buffer.from(this.#encoded, "latin1"));
    this.#encoded = "";
  }
}

/**
 * Most characters that the names repeated by all arrays of a form may add up to: without a limit, 10 MiB of payload
 * become fifty gigabytes.
 */
const MAX_REPEATED_LENGTH = 8 * 1024 * 1024;

/** Characters that are encoded together, so that a million short values are not encoded one by one. */
const MAX_WAITING = 16 * 1024;

function encode(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

/** Most characters of names that arrays repeat; no server accepts a longer request line. */
const MAX_QUERY_NAMES = 32 * 1024;

/** A name and its text, not yet encoded. */
export type QueryPair = readonly [name: string, text: string];

/**
 * The members of a JSON object as pairs, in the order given; repeated names are kept.
 *
 * Strings are kept, numbers keep their literal (`1.0` stays `1.0`), booleans become `true` and `false`, null becomes
 * empty text. An array of such scalars becomes one text, joined with commas (commas inside are not escaped). Any other
 * array and every object becomes its JSON text, exactly as written. The urlencoded body follows the same rules.
 *
 * @param explodeArrays makes each element of an array a pair of its own; an empty array adds none.
 */
export function queryFromJson(json: Uint8Array, explodeArrays = false): QueryPair[] {
  let repeatedLength = 0;
  return sliceMembers(json).flatMap((member): QueryPair[] => {
    if (kindAt(json, member.start) !== "array") return [[member.key, textFromValue(json, member)]];
    const elements = sliceElements(json, member.start, member.end);
    if (!explodeArrays) return [[member.key, textFromArray(json, member, elements)]];
    repeatedLength += member.key.length * elements.length;
    if (repeatedLength > MAX_QUERY_NAMES)
      throw formatError("The names that arrays repeat are too long in total for a query. Shorten them.");
    return elements.map((element) => [member.key, textFromValue(json, element)]);
  });
}

function textFromArray(json: Uint8Array, member: JsonMember, elements: readonly JsonRange[]): string {
  return elements.every((element) => isScalar(json, element))
    ? elements.map((element) => textFromValue(json, element)).join(",")
    : textAt(json, member);
}

/** A scalar as text, null as empty text, an array or object as its JSON text. */
function textFromValue(json: Uint8Array, value: JsonRange): string {
  return kindAt(json, value.start) === "null" ? "" : textAt(json, value);
}

/** Whether a value is neither an array nor an object. */
function isScalar(json: Uint8Array, value: JsonRange): boolean {
  const kind = kindAt(json, value.start);
  return kind !== "object" && kind !== "array";
}

/** Longest name that is encoded, in characters: encoding 10 MiB at once takes two seconds. */
const MAX_LENGTH = 16 * 1024;

/**
 * Returns the name. Fails with CALL_FORMAT_ERROR when it is too long to be encoded.
 *
 * @param field place of the name in the call, for the message.
 */
export function requireShortName(name: string, field: string): string {
  if (name.length <= MAX_LENGTH) return name;
  throw formatError(`${field} has a name of more than ${MAX_LENGTH} characters. Shorten it.`);
}

/** A member's place in the call, safe to show to the caller. */
export function fieldOf(key: string, index: number): string {
  return isShowable(key) ? `payload.${key}` : `payload member ${index + 1}`;
}

/** Whether a member's name is safe to show to the caller: short and without control characters. */
export function isShowable(key: string): boolean {
  // The length first: a long name is in pieces, which the search would join.
  return key.length <= 64 && /^[\w.$-]+$/.test(key);
}
