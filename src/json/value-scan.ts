import { SLICE_BYTES } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import type { JsonText } from "./json-scan.js";
import { plainRunEnd } from "./plain-run.js";

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** Finds where values of valid JSON end, however long they are, a part of a value at a time. */
export class ValueScan {
  /** How far it has come; where the value ends, once it has found that. */
  at = 0;
  readonly #text: JsonText;
  #depth = 0;
  #isInString = false;

  constructor(text: JsonText) {
    this.#text = text;
  }

  /** Goes to the value that starts at `start`. */
  begin(start: number): void {
    this.at = start;
    this.#depth = 0;
    this.#isInString = false;
  }

  /** Reads on for so many bytes. True when it has found the end. */
  goOn(bytes: number): boolean {
    const { end } = this.#text;
    const stop = Math.min(end, this.at + bytes);
    while (this.at < stop) {
      if (this.#isInString ? this.#endsInString(stop) : this.#endsOutside(stop)) return true;
    }
    return this.at >= end;
  }

  #endsInString(stop: number): boolean {
    const { bytes, view } = this.#text;
    let at = plainRunEnd(view, this.at, stop);
    while (at < stop && bytes[at] !== QUOTE) at = plainRunEnd(view, at + (bytes[at] === BACKSLASH ? 2 : 1), stop);
    this.#isInString = at >= stop;
    this.at = this.#isInString ? at : at + 1;
    return !this.#isInString && this.#depth === 0;
  }

  /** As far as the next string. Locals, since this is done for each byte. */
  #endsOutside(stop: number): boolean {
    const { bytes } = this.#text;
    let depth = this.#depth;
    let at = this.at;
    let isOver = false;
    while (at < stop && !isOver) {
      const byte = bytes[at] as number;
      const folded = byte | 0x20;
      // Numbers and literals end before what follows them.
      isOver = depth === 0 && (byte <= 0x20 || byte === COMMA || folded === 0x7d);
      if (isOver) break;
      at++;
      if (byte === QUOTE) break;
      if (folded === 0x7b) depth++;
      else if (folded === 0x7d) isOver = --depth === 0;
    }
    this.#isInString = !isOver && at > this.at && bytes[at - 1] === QUOTE;
    this.#depth = depth;
    this.at = at;
    return isOver;
  }
}

/** Where the value that starts at `start` ends. */
export function* endInSteps(scan: ValueScan, start: number): Steps<number> {
  scan.begin(start);
  while (!scan.goOn(SLICE_BYTES)) yield;
  return scan.at;
}
