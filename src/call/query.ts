import type { JsonRange } from "../json/json-scan.js";
import { type JsonMember, kindAt, sliceElements, sliceMembers, textAt } from "../json/json-slice.js";
import { formatError } from "../model/errors.js";

/** Characters of names that arrays repeat; no server takes a longer request line. */
const MAX_REPEATED_LENGTH = 32 * 1024;

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
    if (repeatedLength > MAX_REPEATED_LENGTH) throw formatError("An array repeats its name too often for a query.");
    return elements.map((element) => [member.key, textFromValue(json, element)]);
  });
}

function textFromArray(json: Uint8Array, member: JsonMember, elements: readonly JsonRange[]): string {
  return elements.every((element) => isScalar(json, element))
    ? elements.map((element) => textFromValue(json, element)).join(",")
    : textAt(json, member);
}

/** A scalar as text, null as the empty text; an array or object as its JSON text. */
export function textFromValue(json: Uint8Array, value: JsonRange): string {
  return kindAt(json, value.start) === "null" ? "" : textAt(json, value);
}

/** Whether a value is neither an array nor an object. */
export function isScalar(json: Uint8Array, value: JsonRange): boolean {
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
