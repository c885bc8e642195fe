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
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** Where the string that begins with the quote at `start` ends: after its closing quote. */
export function stringEnd({ bytes, view, end }: JsonText, start: number): number {
  return Math.min(quoteFrom(bytes, view, start + 1, end) + 1, end);
}

/** Index of the quote that closes the string with the byte at `from` in it; `end` or more when none does before. */
function quoteFrom(bytes: Uint8Array, view: DataView, from: number, end: number): number {
  let at = plainRunEnd(view, from, end);
  while (at < end && bytes[at] !== QUOTE) at = plainRunEnd(view, at + (bytes[at] === BACKSLASH ? 2 : 1), end);
  return at;
}

/** `]` or `}`: they differ in the bit 0x20 only. */
export function isClosing(byte: number | undefined): boolean {
  return ((byte ?? 0) | 0x20) === 0x7d;
}

/**
 * Finds the values of valid JSON one after the other, incrementally, so that neither a long value nor much white space
 * blocks the event loop. Not recursive, so depth costs no stack.
 */
export class ValueScan {
  /** Where the value begins, once found. */
  start = 0;
  /** The current position; the end of the value, once found. */
  at = 0;
  /** Whether no value follows: the scan is at a closing bracket, or at the end of the text. */
  isOver = false;
  readonly #text: JsonText;
  #depth = 0;
  #isInValue = false;
  #isInString = false;

  /** @param end where the text ends in `bytes`. */
  constructor(bytes: Uint8Array, end: number) {
    this.#text = createJsonText(bytes, end);
  }

  /** Starts on the value from `from` on; by default on the one after the last. */
  begin(from: number = this.at): void {
    this.at = from;
    this.#depth = 0;
    this.#isInValue = false;
    this.#isInString = false;
  }

  /** Skips up to `bytes` bytes of what stands before a value. True when it is at the value, or when there is none. */
  skip(bytes: number): boolean {
    const { bytes: text, end } = this.#text;
    const stop = Math.min(end, this.at + bytes);
    let at = this.at;
    while (at < stop && isBetween(text[at] as number)) at++;
    this.at = at;
    this.isOver = at >= end || isClosing(text[at]);
    return at < stop || at >= end;
  }

  /** Scans up to `bytes` more bytes. True when it has found the end, or that there is no value. */
  goOn(bytes: number): boolean {
    if (!this.#isInValue) {
      if (!this.skip(bytes)) return false;
      if (this.isOver) return true;
      this.start = this.at;
      this.#isInValue = true;
    }
    const { end } = this.#text;
    const stop = Math.min(end, this.at + bytes);
    while (this.at < stop) {
      if (this.#isInString ? this.#endsInString(stop) : this.#endsOutside(stop)) return true;
    }
    return this.at >= end;
  }

  #endsInString(stop: number): boolean {
    const { bytes, view } = this.#text;
    const at = quoteFrom(bytes, view, this.at, stop);
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

/** White space, a comma or a colon. */
function isBetween(byte: number): boolean {
  return byte <= 0x20 || byte === COMMA || byte === COLON;
}
