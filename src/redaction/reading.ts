import { type Automaton, BACKSLASH, canonical, isLead } from "./automaton.js";

/** More escapes around each other are not undone. No real software nests as many. */
const MOST_UNDONE = 4;
/** Most bytes held back: 16 per byte of the longest text, plus 4096. No real encoder writes a longer spelling. */
const MAX_KEPT_PER_BYTE = 16;
const MORE_KEPT_BYTES = 4096;
/** Lengths of the escapes `%0A` and `\\u000a`. */
const [TRIPLET, LONG] = [3, 6] as const;
/** Most letters that may be carried over an escape, besides those read since the one before. */
const MOST_CARRIED = 64;

/** Most letters of a match that ordinary text may have by chance. */
const MOST_BY_CHANCE = 4;

/** How far a reading has come. */
interface Place {
  /** Of the automaton. */
  state: number;
  /** How many letters were read. */
  taken: number;
  /** The line break within a text, while only spaces have followed it; else 0. */
  lineEnd: number;
  /** A second candidate: a text that begins in an escape read literally, without failure links; and where it begins. */
  otherState: number;
  otherStart: number;
}

/**
 * Searches bytes that arrive in pieces for the texts of an automaton: through escapes, in both base64 alphabets (see
 * `canonical()`), and across line breaks. Linear in the bytes read, whatever the texts are.
 *
 * It reads the bytes as written, and hands them with the escapes undone to another reading, which does the same: it
 * cannot know how often the reader of the answer decodes it. The next one reads nothing while it has no text in
 * progress, and takes over what the one before has read when that undoes an escape.
 */
export class Reading {
  readonly #automaton: Automaton;
  readonly #found: (start: number, end: number) => void;
  readonly #undone: number;
  /** Created at the first escape. */
  #next: Reading | undefined;
  #isActive = false;
  readonly #place: Place = { state: 0, taken: 0, lineEnd: 0, otherState: 0, otherStart: 0 };
  /** Where each of the last letters was written: a ring buffer. */
  readonly #starts: Float64Array;
  /** The escape in progress: its bytes, and where each was written. */
  readonly #escape = new Uint8Array(LONG);
  readonly #places = new Float64Array(2 * LONG);
  #length = 0;
  #value = 0;
  /** Before that escape, and how many letters had been read before the last one that was undone. */
  readonly #before: Place = { ...this.#place };
  #lastUndone = 0;

  /**
   * @param found called for each match: where its first byte was written, and the offset after its last.
   * @param undone how often the escapes in the bytes were undone before.
   */
  constructor(automaton: Automaton, found: (start: number, end: number) => void, undone = 0) {
    this.#automaton = automaton;
    this.#found = found;
    this.#undone = undone;
    this.#starts = new Float64Array(2 ** Math.ceil(Math.log2(automaton.longest + LONG)));
  }

  /** Most bytes to hold back. */
  get maxKept(): number {
    return MAX_KEPT_PER_BYTE * this.#automaton.longest + MORE_KEPT_BYTES;
  }

  /** Whether a text or an escape is in progress, here or in the next reading. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /**
   * Reads at least up to `atLeast`, then on until no text is in progress. Returns the index where it stopped.
   *
   * @param atLeast at most `bytes.length`.
   * @param offset where `bytes` begins in the whole body.
   */
  read(bytes: Uint8Array, from: number, atLeast: number, offset: number): number {
    const { isFirst } = this.#automaton;
    for (let at = from; ; at++) {
      if (!this.#isActive) {
        while (at < atLeast && isFirst[bytes[at] as number] === 0) at++;
        if (at >= atLeast) return at;
      }
      if (at >= bytes.length) return at;
      this.#take(bytes[at] as number, offset + at, offset + at + 1);
    }
  }

  /** Where the earliest text or escape in progress begins; `end` when there is none. */
  begunAt(end: number): number {
    const text = this.#textAt(this.#place, end);
    const undone = this.#length === 0 ? end : this.#textAt(this.#before, this.#places[0] as number);
    return Math.min(text, undone, this.#next?.begunAt(end) ?? end);
  }

  /** Drops the texts in progress. */
  forget(): void {
    this.#place.state = 0;
    this.#place.otherState = 0;
    this.#place.lineEnd = 0;
    this.#length = 0;
    this.#isActive = false;
    this.#next?.forget();
  }

  /** Reads a byte that was written from `start` to before `end`. */
  #take(byte: number, start: number, end: number): void {
    if (this.#undone < MOST_UNDONE) this.#undo(byte, start, end);
    this.#match(byte, start, end);
    if (this.#length === 0 && this.#next?.isActive && this.#hasAllOf(this.#next)) this.#next.forget();
    const { state, otherState } = this.#place;
    this.#isActive = state !== 0 || otherState !== 0 || this.#length !== 0 || (this.#next?.isActive ?? false);
  }

  /** Reads an escape that is not complete literally. */
  flush(): void {
    if (this.#length > 0) this.#release();
    this.#next?.flush();
  }

  #match(byte: number, start: number, end: number): void {
    const place = this.#place;
    // A secret may have line breaks of its own, or begin with a space.
    if ((byte === LF || byte === CR) && !this.#hasBreak(byte)) {
      this.#breakLine(byte);
      return;
    }
    if (place.lineEnd !== 0) {
      if ((byte === 0x20 || byte === 0x09) && this.#automaton.follow(0, byte) === 0) return;
      place.lineEnd = 0;
    }
    place.state = this.#automaton.next(place.state, canonical(byte));
    this.#starts[place.taken++ & (this.#starts.length - 1)] = start;
    const length = this.#automaton.ends[place.state] as number;
    if (length > 0) this.#found(this.#startOf(place.taken - length), end);
    if (place.otherState === 0) return;
    place.otherState = this.#automaton.follow(place.otherState, canonical(byte));
    if (this.#automaton.ends[place.otherState] === this.#depthOf(place.otherState) && place.otherState !== 0)
      this.#found(place.otherStart, end);
  }

  /**
   * Whether a text contains the line break here. Only of a short match the shorter ones that it ends with count as well:
   * the line break does not use them up, so that looking at all would take quadratic time.
   */
  #hasBreak(byte: number): boolean {
    const { state } = this.#place;
    const isShort = this.#depthOf(state) <= MOST_BY_CHANCE;
    return (isShort ? this.#automaton.next(state, byte) : this.#automaton.follow(state, byte)) !== 0;
  }

  /** Where the text in progress at a place begins; `end` when there is none. */
  #textAt({ state, taken, otherState, otherStart }: Place, end: number): number {
    const text = state === 0 ? end : this.#startOf(taken - this.#depthOf(state));
    return otherState === 0 ? text : Math.min(text, otherStart);
  }

  #depthOf(state: number): number {
    return this.#automaton.depth[state] as number;
  }

  #startOf(letter: number): number {
    return this.#starts[letter & (this.#starts.length - 1)] as number;
  }

  /**
   * Base64 continues on the next line, but not after an empty one. A match of a single letter does not continue either:
   * every fifth line ends with a letter that begins a text, and would be held back. `rests()` adds the texts without
   * that letter instead.
   */
  #breakLine(byte: number): void {
    const place = this.#place;
    const isEmpty = place.lineEnd === LF || place.lineEnd === byte;
    if (isEmpty || this.#depthOf(place.state) < 2) place.state = 0;
    if (isEmpty) place.otherState = 0;
    place.lineEnd = place.state === 0 && place.otherState === 0 ? 0 : byte;
  }

  #undo(byte: number, start: number, end: number): void {
    if (this.#length > 0) {
      const value = this.#valueWith(byte);
      if (value === MORE) this.#hold(byte, start, end);
      else if (value !== NONE) this.#give(value, end);
      if (value !== NONE) return;
      // The result of the escape that begins here may complete the one before it.
      if (this.#next?.isActive || isLead(byte)) this.#release();
      this.#length = 0;
    }
    if (isLead(byte)) {
      copyPlace(this.#place, this.#before);
      this.#value = 0;
      this.#hold(byte, start, end);
    } else if (this.#next?.isActive) this.#next.#take(byte, start, end);
  }

  /** Whether the next one reads the same text, from the same bytes: then it can take that over again. */
  #hasAllOf(next: Reading): boolean {
    const { state, taken } = this.#place;
    if (next.#place.state !== state || next.#place.otherState !== 0 || next.#length !== 0) return false;
    return this.#depthOf(state) + LONG <= taken - this.#lastUndone && !next.#next?.isActive;
  }

  #hold(byte: number, start: number, end: number): void {
    this.#escape[this.#length] = byte;
    this.#places[2 * this.#length] = start;
    this.#places[2 * this.#length + 1] = end;
    this.#length++;
  }

  /** The character that the escape means with one more byte; MORE when it is not complete, NONE when it is none. */
  #valueWith(byte: number): number {
    const isJson = this.#escape[0] === BACKSLASH;
    if (isJson && this.#length === 1) return byte === LETTER_U ? MORE : (SHORT_ONES[byte] ?? NONE);
    const digit = DIGITS[byte] ?? NONE;
    if (digit === NONE) return NONE;
    this.#value = this.#value * 16 + digit;
    return this.#length + 1 < (isJson ? LONG : TRIPLET) ? MORE : this.#value;
  }

  /** Hands on the character that the escape means. */
  #give(value: number, end: number): void {
    const next = this.#goOn();
    this.#lastUndone = this.#before.taken;
    const start = this.#places[0] as number;
    const isJson = this.#escape[0] === BACKSLASH;
    this.#length = 0;
    for (const byte of isJson ? utf8Of(value) : [value]) next.#take(byte, start, end);
  }

  /** Hands on literally what is no escape. */
  #release(): void {
    const next = this.#goOn();
    for (let at = 0; at < this.#length; at++) {
      next.#take(this.#escape[at] as number, this.#places[2 * at] as number, this.#places[2 * at + 1] as number);
    }
    this.#length = 0;
  }

  /**
   * The next reading. It takes over the texts that were in progress before the escape. Where one is in progress there
   * already, the longest other one becomes its second candidate: an escape may also be read literally.
   */
  #goOn(): Reading {
    this.#next ??= new Reading(this.#automaton, this.#found, this.#undone + 1);
    const next = this.#next;
    const { state, taken, lineEnd, otherState, otherStart } = this.#before;
    const depth = this.#depthOf(state);
    const place = next.#place;
    if (place.state !== 0) next.#takeOther(state, this.#startOf(taken - depth));
    // Bounds the work: a secret may itself look like many escapes.
    else if (depth <= taken - this.#lastUndone + MOST_CARRIED) {
      for (let letter = taken - depth; letter < taken; letter++) {
        next.#starts[place.taken++ & (next.#starts.length - 1)] = this.#startOf(letter);
      }
      place.state = state;
      place.lineEnd = lineEnd;
    }
    next.#takeOther(otherState, otherStart);
    return next;
  }

  #takeOther(state: number, start: number): void {
    const place = this.#place;
    if (state === place.state || this.#depthOf(state) <= this.#depthOf(place.otherState)) return;
    place.otherState = state;
    place.otherStart = start;
  }
}

/** By hand: creating an object for each escape takes longer than the rest. */
function copyPlace(from: Place, to: Place): void {
  to.state = from.state;
  to.taken = from.taken;
  to.lineEnd = from.lineEnd;
  to.otherState = from.otherState;
  to.otherStart = from.otherStart;
}

const LF = 0x0a;
const CR = 0x0d;
const LETTER_U = 0x75;
const NONE = -1;
const MORE = -2;

/** Character after a backslash → what the short escape means; NONE if there is no such escape (RFC 8259 section 7). */
const SHORT_ONES = new Int32Array(0x80).fill(NONE);
for (const short of ['""', "\\\\", "//", "b\b", "f\f", "n\n", "r\r", "t\t"]) {
  SHORT_ONES[short.charCodeAt(0)] = short.charCodeAt(1);
}

/** Character → value of the hexadecimal digit; NONE for all others. */
const DIGITS = new Int32Array(0x80).fill(NONE);
for (const digit of "0123456789abcdefABCDEF") DIGITS[digit.charCodeAt(0)] = Number.parseInt(digit, 16);

/** The UTF-8 of a UTF-16 code unit (RFC 3629 section 3), also of half a surrogate pair. */
export function utf8Of(unit: number): readonly number[] {
  const last = 0x80 | (unit & 0x3f);
  if (unit < 0x80) return [unit];
  if (unit < 0x800) return [0xc0 | (unit >> 6), last];
  return [0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), last];
}
