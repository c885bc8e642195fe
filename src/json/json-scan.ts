import { SLICE_BYTES } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";

/**
 * Index of the first byte in `from` … `end` that is a quote, a backslash or a control character: where a plain run of
 * a JSON string stops. `end` when there is none.
 *
 * `end` is a parameter because reading `byteLength` costs more than a short run.
 */
export function plainRunEnd(text: DataView, from: number, end: number): number {
  let at = from;
  for (; at + 8 <= end; at += 8) {
    const low = hitsIn(text.getInt32(at, true));
    if (low !== 0) return at + firstHit(low);
    const high = hitsIn(text.getInt32(at + 4, true));
    if (high !== 0) return at + 4 + firstHit(high);
  }
  for (; at < end; at++) {
    const byte = text.getUint8(at);
    if (byte < 0x20 || byte === 0x22 || byte === 0x5c) return at;
  }
  return at;
}

/** A DataView of the same bytes, without a copy. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The high bit of each of four bytes that ends a run; 0 when none does.
 *
 * `(word ^ 0x02…) - 0x21…` borrows into the high bit of bytes below 0x20 and of the quote (0x22 becomes 0x20, 0x20
 * becomes 0x22), `(word ^ 0x5c…) - 0x01…` into that of the backslash; `& ~word` excludes bytes from 0x80. A borrow
 * affects only bytes above the one it comes from, so the lowest hit is right
 * (https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord).
 */
function hitsIn(word: number): number {
  return (((word ^ 0x02020202) - 0x21212121) | ((word ^ 0x5c5c5c5c) - 0x01010101)) & ~word & 0x80808080;
}

function firstHit(hits: number): number {
  return (31 - Math.clz32(hits & -hits)) >> 3;
}

// Everything below expects JSON that a validator has accepted. For other text it still terminates, with any result.

/** JSON to scan. Positions are indexes into `bytes`; `end` is exclusive. */
export interface JsonText {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly end: number;
}

/** A piece of a text: `start` is the first byte, `end` the one after the last. */
export interface JsonRange {
  readonly start: number;
  readonly end: number;
}

/** Prepares `bytes`, up to `end`, for scanning. */
export function createJsonText(bytes: Uint8Array, end: number): JsonText {
  return { bytes, view: viewOf(bytes), end };
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/** Where the value that starts at `start` ends. Not recursive, so depth costs no stack. */
export function valueEnd(text: JsonText, start: number): number {
  const first = text.bytes[start] as number;
  if (first === QUOTE) return stringEnd(text, start);
  return isOpening(first) ? containerEnd(text, start) : scalarEnd(text, start);
}

/** Where the string that begins with the quote at `start` ends: after its closing quote. */
export function stringEnd({ bytes, view, end }: JsonText, start: number): number {
  let at = plainRunEnd(view, start + 1, end);
  while (at < end && bytes[at] !== QUOTE) at = plainRunEnd(view, at + (bytes[at] === BACKSLASH ? 2 : 1), end);
  return Math.min(at + 1, end);
}

/** Index of the first byte from `from` on that is not whitespace. */
export function spaceEnd({ bytes, end }: JsonText, from: number): number {
  let at = from;
  while (at < end && (bytes[at] as number) <= 0x20) at++;
  return at;
}

function containerEnd(text: JsonText, start: number): number {
  const { bytes, end } = text;
  let depth = 0;
  let at = start;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    at++;
    if (isOpening(byte)) depth++;
    else if (isClosing(byte) && --depth === 0) return at;
  }
  return end;
}

/** Numbers and literals stop at whitespace, a comma or a closing bracket. */
function scalarEnd({ bytes, end }: JsonText, start: number): number {
  let at = start;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte <= 0x20 || byte === COMMA || isClosing(byte)) break;
    at++;
  }
  return at;
}

/** `[` or `{`: they differ in the bit 0x20 only. */
function isOpening(byte: number): boolean {
  return (byte | 0x20) === 0x7b;
}

/** `]` or `}`: likewise. */
function isClosing(byte: number): boolean {
  return (byte | 0x20) === 0x7d;
}

/** Finds the end of a value of valid JSON incrementally, so that a long value does not block the event loop. */
export class ValueScan {
  /** The current position; the end of the value, once found. */
  at = 0;
  readonly #text: JsonText;
  #depth = 0;
  #isInString = false;

  constructor(text: JsonText) {
    this.#text = text;
  }

  /** Starts on the value at `start`. */
  begin(start: number): void {
    this.at = start;
    this.#depth = 0;
    this.#isInString = false;
  }

  /** Scans up to `bytes` more bytes. True when it has found the end. */
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

  /** Scans up to the next string. Uses locals for speed, since it handles each byte. */
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

/** Where the value that starts at `start` ends, in steps. */
export function* endInSteps(scan: ValueScan, start: number): Steps<number> {
  scan.begin(start);
  while (!scan.goOn(SLICE_BYTES)) yield;
  return scan.at;
}
