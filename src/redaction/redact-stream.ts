import { bufferOf, NOTHING } from "../lib/chunks.js";
import type { Automaton } from "./automaton.js";
import { AHEAD_BYTES, PART_BYTES, type PieceFilter } from "./piece-filter.js";
import { canonical, Unescape } from "./unescape.js";

/** What stands in an answer where a token was. */
export const REDACTED = "[redacted]";

const REPLACEMENT = Buffer.from(REDACTED, "latin1");

/** Takes secrets out of a body that comes in pieces, however it is cut. */
export interface StreamRedactor {
  /**
   * What may leave now, none of it empty. Only bytes with which a secret could begin are kept back, so that an event is not
   * delayed.
   *
   * @param ahead what follows, or the beginning of it, where that is known already; empty where nothing does. Then the end of
   *   the piece needs no closer look, and most bodies none at all.
   */
  push(piece: Uint8Array, ahead?: Uint8Array): readonly Buffer[];
  /** What was kept back, and turned out to be no secret. */
  end(): readonly Buffer[];
  /** Whether anything was taken out so far. */
  hasFound(): boolean;
}

/** From the first byte to the one behind the last, in the whole body. */
interface Run {
  start: number;
  end: number;
  /** Whether its mark has left already, and what is in front of the run with it. */
  isMarked: boolean;
}

/** Below, one part is cheaper than several; a copy of more costs much, and one byte that is kept back would make it. */
const MIN_APART_BYTES = 16 * 1024;
/** Kept back for each byte of the longest text that is searched for, and more: a longer spelling is none of a writer. */
const MAX_KEPT_PER_BYTE = 16;
const MORE_KEPT_BYTES = 4096;

/**
 * Replaces each run of bytes that spelled secrets cover by one mark. What comes out is the same whatever the pieces are.
 * Linear in the bytes, whatever they and the secrets are, and however they are cut.
 */
export function createStreamRedactor(automaton: () => Automaton, filter: PieceFilter): StreamRedactor {
  const kept = new KeptBytes();
  let runs: Run[] = [];
  /** How much has come, and how much of it has left or is taken out. */
  let came = 0;
  let left = 0;
  let hasFound = false;
  /** Made when something has to be read closely. */
  let reading: Reading | undefined;
  const begin = () =>
    new Reading(automaton(), (start, end) => {
      hasFound = true;
      addRun(runs, { start, end, isMarked: false });
    });

  function readPart(part: Uint8Array, ahead: Uint8Array | undefined): void {
    let at = reading === undefined || reading.isIdle ? 0 : reading.read(part, 0, 0, came);
    if (at < part.length) filter.load(part, ahead);
    while (at < part.length) {
      const { isFound, from, to } = filter.next(at);
      // A text that begins behind the last place is in what follows, or has no room.
      if (from >= part.length || (!isFound && ahead?.length === 0)) break;
      reading ??= begin();
      at = reading.read(part, from, Math.min(to, part.length), came);
    }
    came += part.length;
  }

  /** What is in front of a place of the body, whose last piece is not kept yet. */
  function outputTo(to: number, piece: Buffer): readonly Buffer[] {
    const parts: Buffer[] = [];
    const keptTo = left + kept.length;
    const give = (from: number, end: number) => {
      // A copy: what is kept is written to again.
      if (from < Math.min(end, keptTo)) parts.push(Buffer.from(kept.bytes.subarray(from - left, end - left)));
      if (Math.max(from, keptTo) < end) parts.push(piece.subarray(Math.max(from - keptTo, 0), end - keptTo));
    };
    let from = left;
    let done = 0;
    for (const run of runs) {
      if (run.start >= to) break;
      give(from, run.start);
      if (!run.isMarked) parts.push(REPLACEMENT);
      from = Math.min(run.end, to);
      if (run.end > to) {
        run.start = to;
        run.isMarked = true;
        break;
      }
      done++;
    }
    if (done > 0) runs = runs.slice(done);
    give(from, to);
    const fromPiece = Math.max(0, to - keptTo);
    kept.drop(Math.min(kept.length, to - left));
    kept.add(piece.subarray(fromPiece));
    left = to;
    return parts.length > 1 && piece.length < MIN_APART_BYTES ? [Buffer.concat(parts)] : parts;
  }

  return {
    push(piece, ahead) {
      for (let at = 0; at < piece.length; at += PART_BYTES) {
        const end = at + PART_BYTES;
        readPart(piece.subarray(at, end), end < piece.length ? piece.subarray(end, end + AHEAD_BYTES) : ahead);
      }
      let begun = reading?.begunAt(came) ?? came;
      if (reading !== undefined && came - begun > reading.maxKept) {
        reading.flush(came);
        reading.forget();
        begun = came;
      }
      return outputTo(begun, bufferOf(piece));
    },
    end() {
      reading?.flush(came);
      return outputTo(came, NOTHING);
    },
    hasFound: () => hasFound,
  };
}

/** Those that overlap become one; those that only touch are two. */
function addRun(runs: Run[], run: Run): void {
  for (let last = runs.at(-1); last !== undefined && run.start < last.end; last = runs.at(-1)) {
    run.start = Math.min(run.start, last.start);
    run.end = Math.max(run.end, last.end);
    run.isMarked ||= last.isMarked;
    runs.pop();
  }
  runs.push(run);
}

/** Bytes that come at one end and go at the other, each moved a few times at most. */
class KeptBytes {
  #room = NOTHING;
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Valid until more are added. */
  get bytes(): Buffer {
    return this.#room.subarray(this.#start, this.#end);
  }

  add(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#end + bytes.length > this.#room.length) {
      const needed = this.length + bytes.length;
      const room = 2 * needed > this.#room.length ? Buffer.allocUnsafeSlow(2 * needed) : this.#room;
      this.bytes.copy(room);
      this.#end = this.length;
      this.#start = 0;
      this.#room = room;
    }
    this.#room.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  drop(count: number): void {
    this.#start += count;
    if (this.#start !== this.#end) return;
    this.#start = 0;
    this.#end = 0;
  }
}

const LF = 0x0a;
const CR = 0x0d;

/**
 * Reads bytes that come in pieces for texts, however they are escaped, in base64 of both alphabets, and over the ends of
 * lines (see `canonical()`). Linear in what is read, whatever the texts are; so many places are kept as the longest has bytes.
 */
class Reading extends Unescape {
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

  /** Most bytes that are kept back. */
  get maxKept(): number {
    return MAX_KEPT_PER_BYTE * this.#automaton.longest + MORE_KEPT_BYTES;
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
