import { SLICE_BYTES } from "../slices.js";
import type { Steps } from "../turns.js";
import { createJsonText, type JsonRange, spaceEnd } from "./json-scan.js";
import { type JsonMember, kindAt, textAt } from "./json-slice.js";
import { ValueScan } from "./value-scan.js";

const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSING_BRACKET = 0x5d;

/** What `sliceMembers()` gives, in steps. */
export function* membersInSteps(bytes: Uint8Array, start = 0, end: number = bytes.length): Steps<JsonMember[]> {
  const members: JsonMember[] = [];
  if (kindAt(bytes, start) !== "object") return members;
  const text = createJsonText(bytes, end);
  const scan = new ValueScan(text);
  let at = spaceEnd(text, spaceEnd(text, start) + 1);
  let pausedAt = at;
  while (at < end && bytes[at] === QUOTE) {
    if (at - pausedAt >= SLICE_BYTES) {
      yield;
      pausedAt = at;
    }
    const name = { start: at, end: yield* endInSteps(scan, at) };
    const valueStart = spaceEnd(text, spaceEnd(text, name.end) + 1);
    const member = { key: textAt(bytes, name), start: valueStart, end: yield* endInSteps(scan, valueStart) };
    members.push(member);
    at = spaceEnd(text, member.end);
    if (bytes[at] === COMMA) at = spaceEnd(text, at + 1);
  }
  return members;
}

function* endInSteps(scan: ValueScan, start: number): Steps<number> {
  scan.begin(start);
  while (!scan.goOn(SLICE_BYTES)) yield;
  return scan.at;
}

/**
 * Goes through the elements of an array of valid JSON: a million of them is no list. Between two elements, and within a
 * long one, it pauses for others to have their turn.
 */
export class ElementCursor implements JsonRange {
  /** Of the element that was found. */
  start = 0;
  end = 0;
  readonly #text;
  readonly #scan: ValueScan;
  #isInElement = false;
  #pausedAt: number;

  /** @param array where it stands in the bytes. */
  constructor(bytes: Uint8Array, array: JsonRange) {
    this.#text = createJsonText(bytes, array.end);
    this.#scan = new ValueScan(this.#text);
    this.#pausedAt = array.start;
    this.end = spaceEnd(this.#text, array.start);
  }

  /** Looks for the next element. */
  goOn(): "element" | "pause" | "end" {
    if (!this.#isInElement && !this.#begin()) return "end";
    this.#isInElement = !this.#scan.goOn(SLICE_BYTES);
    if (this.#isInElement) return "pause";
    this.end = this.#scan.at;
    return "element";
  }

  /** Whether it is time to pause, after an element. */
  get isLong(): boolean {
    const isLong = this.end - this.#pausedAt >= SLICE_BYTES;
    if (isLong) this.#pausedAt = this.end;
    return isLong;
  }

  #begin(): boolean {
    const { bytes, end } = this.#text;
    // Over the bracket at first, then over a comma.
    let at = spaceEnd(this.#text, this.end);
    if (this.start === 0 || bytes[at] === COMMA) at = spaceEnd(this.#text, at + 1);
    else return false;
    if (at >= end || bytes[at] === CLOSING_BRACKET) return false;
    this.start = at;
    this.#scan.begin(at);
    return true;
  }
}
