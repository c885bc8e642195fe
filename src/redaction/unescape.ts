/**
 * Undoes JSON escapes (RFC 8259 section 7) and percent-encoding (RFC 3986 section 2.1) in bytes that arrive one by one.
 * It undoes both kinds together and repeatedly, since it cannot know how often the reader of the answer decodes it.
 */
export abstract class Unescape {
  /** Characters from `#low` to below `#high` that may become an escape; the first is a backslash or a percent sign. */
  readonly #pending = new Int32Array(ROOM);
  /** Where the first byte of each was written. */
  readonly #starts = new Float64Array(ROOM);
  /** How many nested JSON escapes were undone to get each. */
  readonly #levels = new Uint8Array(ROOM);
  /** 1 for each that is a backslash, or was one before an escape was undone. */
  readonly #slashes = new Uint8Array(ROOM);
  #low = 0;
  #high = 0;

  /**
   * Called with each decoded byte, which was written from `start` to before `end`.
   *
   * @param isSlash whether it is a backslash, or begins with one as written or once some of its escapes are undone.
   */
  protected abstract take(byte: number, start: number, end: number, isSlash: boolean): void;

  /**
   * Called before an escape is undone, with its characters after the first one, which can also be read literally.
   *
   * @param values the characters, from `from` to before `to`; `starts` has where each was written.
   * @param end where the escape ends.
   */
  protected abstract unless(values: Int32Array, from: number, to: number, starts: Float64Array, end: number): void;

  /** Where the pending escape begins; undefined when nothing is pending. */
  protected get pendingFrom(): number | undefined {
    return this.#low === this.#high ? undefined : this.#starts[this.#low];
  }

  /** Reads the byte written at `start`. */
  push(byte: number, start: number): void {
    if (this.#low === this.#high && !isLead(byte)) {
      this.take(byte, start, start + 1, false);
      return;
    }
    if (this.#high === ROOM) this.#moveDown();
    this.#pending[this.#high] = byte;
    this.#levels[this.#high] = 0;
    this.#slashes[this.#high] = Number(byte === BACKSLASH);
    this.#starts[this.#high++] = start;
    while (this.#undoLast(start + 1));
    if (!this.#isPending()) this.flush(start + 1);
    else if (this.#high - this.#low > MAX_PENDING) this.#takeFirst(start + 1);
  }

  /** Takes everything pending literally. */
  flush(end: number): void {
    while (this.#low < this.#high) this.#takeFirst(end);
  }

  /**
   * Undoes the escape that the pending characters end with. False if there is none; a result may complete another one.
   */
  #undoLast(end: number): boolean {
    const pending = this.#pending;
    let from = this.#high - SHORT;
    let value =
      from >= this.#low && pending[from] === BACKSLASH ? (SHORT_ONES[pending[from + 1] as number] ?? NONE) : NONE;
    // A backslash that was undone less often than the one before begins an escape of its own.
    if (value === BACKSLASH && (this.#levels[from + 1] as number) < (this.#levels[from] as number)) value = NONE;
    if (value === NONE && this.#high - TRIPLET >= this.#low) {
      from = this.#high - TRIPLET;
      if (pending[from] === PERCENT) value = numberIn(pending, from + 1, this.#high);
    }
    if (value === NONE && this.#high - LONG >= this.#low) {
      from = this.#high - LONG;
      if (pending[from] === BACKSLASH && pending[from + 1] === LETTER_U) {
        value = numberIn(pending, from + 2, this.#high);
        if (value > 0x7f) value += WIDE;
      }
    }
    if (value === NONE) return false;
    this.unless(pending, from + 1, this.#high, this.#starts, end);
    let level = 0;
    for (let at = from; at < this.#high; at++) level = Math.max(level, this.#levels[at] as number);
    this.#levels[from] = pending[from] === BACKSLASH ? level + 1 : level;
    pending[from] = value;
    if (value === BACKSLASH) this.#slashes[from] = 1;
    this.#high = from + 1;
    return true;
  }

  /** Whether the last pending characters may still become an escape, which may then complete an earlier one. */
  #isPending(): boolean {
    let lead = this.#high - 1;
    while (lead > this.#low && lead > this.#high - LONG && !isLead(this.#pending[lead] as number)) lead--;
    const isLong = this.#pending[lead + 1] === LETTER_U;
    const digitsAt = this.#pending[lead] === PERCENT ? lead + 1 : lead + 2;
    if (lead + 1 < this.#high && digitsAt === lead + 2 && !isLong) return false;
    return isLead(this.#pending[lead] as number) && numberIn(this.#pending, digitsAt, this.#high) !== NONE;
  }

  #takeFirst(end: number): void {
    const at = this.#low++;
    const value = this.#pending[at] as number;
    const start = this.#starts[at] as number;
    const ends = this.#low === this.#high ? end : (this.#starts[this.#low] as number);
    const isSlash = this.#slashes[at] === 1;
    const character = value - WIDE;
    // UTF-8 (RFC 3629 section 3).
    if (character >= 0x800) this.take(0xe0 | (character >> 12), start, ends, isSlash);
    if (character >= 0) {
      const second = character < 0x800 ? 0xc0 | (character >> 6) : 0x80 | ((character >> 6) & 0x3f);
      this.take(second, start, ends, isSlash);
    }
    this.take(character < 0 ? value : 0x80 | (character & 0x3f), start, ends, isSlash);
  }

  #moveDown(): void {
    this.#pending.copyWithin(0, this.#low, this.#high);
    this.#starts.copyWithin(0, this.#low, this.#high);
    this.#levels.copyWithin(0, this.#low, this.#high);
    this.#slashes.copyWithin(0, this.#low, this.#high);
    this.#high -= this.#low;
    this.#low = 0;
  }
}

export const BACKSLASH = 0x5c;
const PERCENT = 0x25;
const LETTER_U = 0x75;
const ROOM = 256;
/** Characters; escapes nested so deeply that they need more are not undone. */
const MAX_PENDING = 64;
const NONE = -1;
/** Added to a non-ASCII character from a JSON escape, which is several bytes of UTF-8. */
const WIDE = 0x10000;
/** Lengths of the escapes `\\n`, `%0A` and `\\u000a`. */
const [SHORT, TRIPLET, LONG] = [2, 3, 6] as const;

/** Character after a backslash → what the short escape means; NONE if there is no such escape. */
const SHORT_ONES = new Int32Array(0x80).fill(NONE);
for (const short of ['""', "\\\\", "//", "b\b", "f\f", "n\n", "r\r", "t\t"]) {
  SHORT_ONES[short.charCodeAt(0)] = short.charCodeAt(1);
}

/** Character → value of the hexadecimal digit; NONE for all others. */
const DIGITS = new Int32Array(0x80).fill(NONE);
for (const digit of "0123456789abcdefABCDEF") DIGITS[digit.charCodeAt(0)] = Number.parseInt(digit, 16);

/** The hexadecimal number; NONE when they are not all digits. */
function numberIn(values: Int32Array, from: number, to: number): number {
  let number = 0;
  for (let at = from; at < to; at++) {
    const digit = DIGITS[values[at] as number] ?? NONE;
    if (digit === NONE) return NONE;
    number = number * 16 + digit;
  }
  return number;
}

/** Whether the byte begins an escape. */
export function isLead(value: number): boolean {
  return value === BACKSLASH || value === PERCENT;
}

/** Whether a text contains a byte that begins an escape. */
export function hasLead(text: Uint8Array): boolean {
  return text.includes(BACKSLASH) || text.includes(PERCENT);
}

/** Maps base64url to base64 (RFC 4648 sections 4 and 5): the search treats both alphabets as one. */
export function canonical(byte: number): number {
  return byte === 0x2d ? 0x2b : byte === 0x5f ? 0x2f : byte;
}
