import { createPace, SLICE_BYTES } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { createJsonText, type JsonRange, spaceEnd } from "./json-scan.js";
import { type JsonMember, kindAt, textAt } from "./json-slice.js";
import { endInSteps, ValueScan } from "./value-scan.js";

const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSING_BRACKET = 0x5d;
/** Between two pauses: of short ones, what is done with each takes longer than reading it. */
const MAX_ELEMENTS = 2048;

/** What `sliceMembers()` gives, in steps. */
export function* membersInSteps(bytes: Uint8Array, start = 0, end: number = bytes.length): Steps<JsonMember[]> {
  const members: JsonMember[] = [];
  if (kindAt(bytes, start) !== "object") return members;
  const text = createJsonText(bytes, end);
  const scan = new ValueScan(text);
  let at = spaceEnd(text, spaceEnd(text, start) + 1);
  const mayPause = createPace(at);
  while (at < end && bytes[at] === QUOTE) {
    if (mayPause(at)) yield;
    const name = { start: at, end: yield* endInSteps(scan, at) };
    const valueStart = spaceEnd(text, spaceEnd(text, name.end) + 1);
    const member = { key: textAt(bytes, name), start: valueStart, end: yield* endInSteps(scan, valueStart) };
    members.push(member);
    at = spaceEnd(text, member.end);
    if (bytes[at] === COMMA) at = spaceEnd(text, at + 1);
  }
  return members;
}

/**
 * The elements of an array of valid JSON, one after the other: a million of them is no list. Undefined where it is time
 * to pause, between two of them or within a long one.
 *
 * @param array where it stands in the bytes.
 * @returns ranges that hold until the next one is asked for.
 */
export function* elementsInSteps(
  bytes: Uint8Array,
  array: JsonRange,
): Generator<JsonRange | undefined, void, undefined> {
  const text = createJsonText(bytes, array.end);
  const scan = new ValueScan(text);
  const element = { start: 0, end: array.start };
  const mayPause = createPace(array.start);
  let untilPause = MAX_ELEMENTS;
  let at = spaceEnd(text, spaceEnd(text, array.start) + 1);
  while (at < array.end && bytes[at] !== CLOSING_BRACKET) {
    scan.begin(at);
    while (!scan.goOn(SLICE_BYTES)) yield;
    element.start = at;
    element.end = scan.at;
    yield element;
    untilPause--;
    if (mayPause(element.end) || untilPause <= 0) {
      untilPause = MAX_ELEMENTS;
      yield;
    }
    at = spaceEnd(text, element.end);
    if (bytes[at] !== COMMA) return;
    at = spaceEnd(text, at + 1);
  }
}
