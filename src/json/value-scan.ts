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
      if (this.#isInString ? this.#endsInString(stop) : this.#endsOutside()) return true;
    }
    return this.at >= end;
  }

  #endsInString(stop: number): boolean {
    const { bytes, view } = this.#text;
    const at = plainRunEnd(view, this.at, stop);
    this.at = at;
    if (at >= stop) return false;
    this.at += bytes[at] === BACKSLASH ? 2 : 1;
    this.#isInString = bytes[at] !== QUOTE;
    return !this.#isInString && this.#depth === 0;
  }

  #endsOutside(): boolean {
    const byte = this.#text.bytes[this.at] as number;
    const folded = byte | 0x20;
    // Numbers and literals end before what follows them.
    if (this.#depth === 0 && (byte <= 0x20 || byte === COMMA || folded === 0x7d)) return true;
    this.at++;
    if (byte === QUOTE) this.#isInString = true;
    else if (folded === 0x7b) this.#depth++;
    else if (folded === 0x7d) return --this.#depth === 0;
    return false;
  }
}
