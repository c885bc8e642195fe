import type { Automaton } from "./automaton.js";
import { canonical, Unescape } from "./unescape.js";

const LF = 0x0a;
const CR = 0x0d;

/**
 * Reads bytes that come in pieces for texts, however they are escaped, in base64 of both alphabets, and over the ends of
 * lines (see `canonical()`). Linear in what is read, whatever the texts are; so many places are kept as the longest has bytes.
 */
export class Reading extends Unescape {
  readonly #automaton: Automaton;
  /** Told of each text that ends: where its first byte was written, and behind the last. */
  readonly #found: (start: number, end: number) => void;
  #state = 0;
  /** Where the last bytes that were taken begin, in a ring. */
  readonly #starts: Float64Array;
  #taken = 0;
  /** The end of a line within a text, when nothing but spaces has come behind it. */
  #lineEnd = 0;
  /** A text that begins within what was undone, if what is there stands as it is: it goes on so, or it is none. */
  #otherState = 0;
  #otherStart = 0;
  #otherFrom = 0;

  constructor(automaton: Automaton, found: (start: number, end: number) => void) {
    super();
    this.#automaton = automaton;
    this.#found = found;
    this.#starts = new Float64Array(2 ** Math.ceil(Math.log2(automaton.longest + 1)));
  }

  /** Whether no text is begun. */
  get isIdle(): boolean {
    return this.#state === 0 && this.#otherState === 0 && this.pendingFrom === undefined;
  }

  /**
   * Reads on, and stops where no text is begun once it has come to `atLeast`. Gives back how far it has come.
   *
   * @param atLeast no more than there are bytes.
   * @param offset of the first byte from where places are counted.
   */
  read(bytes: Uint8Array, from: number, atLeast: number, offset: number): number {
    const { isFirst } = this.#automaton;
    for (let at = from; ; at++) {
      if (this.isIdle) {
        while (at < atLeast && isFirst[bytes[at] as number] === 0) at++;
        if (at >= atLeast) return at;
      }
      if (at >= bytes.length) return at;
      this.push(bytes[at] as number, offset + at);
    }
  }

  /** What was read and does not end here leads nowhere. */
  forget(): void {
    this.#state = 0;
    this.#otherState = 0;
    this.#lineEnd = 0;
  }

  /** Where the first text begins that may have begun; `end` when none has. */
  begunAt(end: number): number {
    const depth = this.#automaton.depth[this.#state] as number;
    return Math.min(
      depth === 0 ? end : this.#startOf(depth),
      this.#otherState === 0 ? end : this.#otherStart,
      this.pendingFrom ?? end,
    );
  }

  protected take(byte: number, start: number, end: number): void {
    if (byte === LF || byte === CR) {
      this.#breakLine(byte);
      return;
    }
    if (this.#lineEnd !== 0) {
      if (byte === 0x20 || byte === 0x09) return;
      this.#lineEnd = 0;
    }
    const letter = canonical(byte);
    this.#state = this.#automaton.next(this.#state, letter);
    this.#starts[this.#taken++ & (this.#starts.length - 1)] = start;
    const length = this.#automaton.ends[this.#state] as number;
    if (length > 0) this.#found(this.#startOf(length), end);
    if (this.#otherState !== 0 && start >= this.#otherFrom) this.#goOn(letter, end);
  }

  /** The longest end of an escape with which a text begins, unless more of another one was read already. */
  protected unless(values: Int32Array, from: number, to: number, starts: Float64Array, end: number): void {
    for (let first = from; first < to; first++) {
      let state = 0;
      for (let at = first; at < to && (at === first || state !== 0); at++) {
        state = this.#automaton.follow(state, canonical(values[at] as number));
      }
      if (state === 0 || (this.#automaton.depth[state] as number) < (this.#automaton.depth[this.#otherState] as number))
        continue;
      this.#otherState = state;
      this.#otherStart = starts[first] as number;
      this.#otherFrom = end;
      return;
    }
  }

  /**
   * Base64 goes on in the next line, but not behind an empty one. Of one letter it does not either (`spellingsOf()` has
   * the texts without it): every fifth line ends with one that begins a text, and would be kept back.
   */
  #breakLine(byte: number): void {
    const isEmpty = this.#lineEnd === LF || this.#lineEnd === byte;
    if (isEmpty || (this.#automaton.depth[this.#state] as number) < 2) this.#state = 0;
    if (isEmpty) this.#otherState = 0;
    this.#lineEnd = this.#state === 0 && this.#otherState === 0 ? 0 : byte;
  }

  #goOn(letter: number, end: number): void {
    this.#otherState = this.#automaton.follow(this.#otherState, letter);
    const length = this.#automaton.ends[this.#otherState] as number;
    if (length > 0 && length === this.#automaton.depth[this.#otherState]) this.#found(this.#otherStart, end);
  }

  #startOf(length: number): number {
    return this.#starts[(this.#taken - length) & (this.#starts.length - 1)] as number;
  }
}
