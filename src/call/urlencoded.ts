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

/** Media type of a form (URL standard, section 5). */
export const URLENCODED = "application/x-www-form-urlencoded";

/**
 * The members of a JSON object as a urlencoded body, in the order written, by the rule of `queryFromJson()`: arrays of
 * scalars joined with commas, other arrays and objects as JSON text. A space is `+`, as in forms.
 *
 * Fails with CALL_FORMAT_ERROR for a name that is too long, with OVERLOADED where there is no room.
 *
 * @param memory for the bytes, as they are written: three times as many as the JSON has at the most, but for names that
 *   are repeated.
 * @param explodeArrays makes a pair of each element of an array.
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

/** Whether a content-type header says urlencoded, with whatever parameters. */
export function isUrlencoded(contentType: string | undefined): boolean {
  return contentType !== undefined && parseMediaType(contentType).essence === URLENCODED;
}

/** A pair for each. */
function* writeElements(
  form: FormWriter,
  json: Uint8Array,
  array: JsonRange,
  name: string,
  field: string,
): Steps<void> {
  const mayPause = createPace(form.length);
  let namesLength = 0;
  for (const element of elementsInSteps(json, array)) {
    if (element === undefined) {
      yield;
      continue;
    }
    namesLength += name.length;
    if (namesLength > MAX_REPEATED_LENGTH) throw formatError(`${field} repeats its name too often. Shorten the name.`);
    form.begin(name);
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

/** Encodes text by text; none of them ends between the halves of a pair of surrogates. */
class FormWriter {
  readonly #form: Chunks = createChunks();
  readonly #memory: Room;
  #encoded = "";
  #text = "";

  constructor(memory: Room) {
    this.#memory = memory;
  }

  /** Bytes written so far, and characters that wait. */
  get length(): number {
    return this.#form.length + this.#encoded.length;
  }

  /** A pair; the name is encoded. */
  begin(name: string): void {
    this.#encodeText();
    const mark = this.length === 0 ? "" : "&";
    this.#encoded += `${mark}${name}=`;
    this.#flush();
  }

  /** More of the value. */
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

/** Most characters of one name again and again: without a limit, ten mebibytes of payload become fifty gigabytes. */
const MAX_REPEATED_LENGTH = 8 * 1024 * 1024;

/** Characters that are encoded together, so that a million short ones are not encoded one by one. */
const MAX_WAITING = 16 * 1024;

function encode(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

/** Characters of names that arrays repeat; no server takes a longer request line. */
const MAX_QUERY_NAMES = 32 * 1024;

/** A name and its text, not yet encoded. */
export type QueryPair = readonly [name: string, text: string];

/**
 * The members of a JSON object as pairs, in the order written; a repeated name comes as often.
 *
 * Strings as they are, numbers as their own literal (`1.0` stays `1.0`), booleans as `true` and `false`, null as the
 * empty text. An array of such scalars becomes one text, joined with commas (commas inside are not escaped). Any other
 * array and every object becomes its JSON text, exactly as written. The urlencoded body follows the same rule.
 *
 * @param explodeArrays makes a pair of each element of an array instead; none of an empty one.
 */
export function queryFromJson(json: Uint8Array, explodeArrays = false): QueryPair[] {
  let repeatedLength = 0;
  return sliceMembers(json).flatMap((member): QueryPair[] => {
    if (kindAt(json, member.start) !== "array") return [[member.key, textFromValue(json, member)]];
    const elements = sliceElements(json, member.start, member.end);
    if (!explodeArrays) return [[member.key, textFromArray(json, member, elements)]];
    repeatedLength += member.key.length * elements.length;
    if (repeatedLength > MAX_QUERY_NAMES) throw formatError("An array repeats its name too often for a query.");
    return elements.map((element) => [member.key, textFromValue(json, element)]);
  });
}

function textFromArray(json: Uint8Array, member: JsonMember, elements: readonly JsonRange[]): string {
  return elements.every((element) => isScalar(json, element))
    ? elements.map((element) => textFromValue(json, element)).join(",")
    : textAt(json, member);
}

/** A scalar as text, null as the empty text; an array or object as its JSON text. */
function textFromValue(json: Uint8Array, value: JsonRange): string {
  return kindAt(json, value.start) === "null" ? "" : textAt(json, value);
}

/** Whether a value is neither an array nor an object. */
function isScalar(json: Uint8Array, value: JsonRange): boolean {
  const kind = kindAt(json, value.start);
  return kind !== "object" && kind !== "array";
}

/** Most characters of a name that is written anew: to encode ten mebibytes in one go takes two seconds. */
const MAX_LENGTH = 16 * 1024;

/** A name that is going to be encoded. Fails with CALL_FORMAT_ERROR when it is too long. @param field whose name it is. */
export function requireShortName(name: string, field: string): string {
  if (name.length <= MAX_LENGTH) return name;
  throw formatError(`${field} has a name of more than ${MAX_LENGTH} characters. Shorten it.`);
}

/** A member's place in the call, safe to repeat to the caller: short and without control characters. */
export function fieldOf(key: string, index: number): string {
  return /^[\w.$-]{1,64}$/.test(key) ? `payload.${key}` : `payload member ${index + 1}`;
}
