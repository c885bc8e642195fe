import { bufferOf, NOTHING } from "../lib/chunks.js";
import { type Automaton, CR, LF, type Remainder, Track } from "./automaton.js";
import { AHEAD_BYTES, PART_BYTES, type PieceFilter } from "./piece-filter.js";
import { BACKSLASH, canonical, Unescape } from "./unescape.js";

/** Replaces a secret in an answer. */
export const REDACTED = "[redacted]";

const REPLACEMENT = Buffer.from(REDACTED, "latin1");

/** Masks secrets in a body that arrives in pieces, wherever it is cut. */
export interface StreamRedactor {
  /**
   * Returns the output that is ready, without empty buffers. Only bytes that could begin a secret are held back, so
   * that events are not delayed.
   *
   * @param ahead the bytes after the piece, or the first of them, if known; empty when nothing follows. It saves a
   *   close read of the end of the piece, so that most bodies need none at all.
   */
  push(piece: Uint8Array, ahead?: Uint8Array): readonly Buffer[];
  /** Returns what is still held back. */
  end(): readonly Buffer[];
  /** Whether a secret was found so far. */
  hasFound(): boolean;
}

/** A run of bytes to mask, as offsets into the whole body; `end` is exclusive. */
interface Run {
  start: number;
  end: number;
  /** Whether its replacement was output already, and everything before it. */
  isMarked: boolean;
}

/**
 * The output for a piece smaller than this is joined to one buffer, which is cheaper than several. For larger pieces
 * one held-back byte would cause an expensive copy.
 */
const MIN_APART_BYTES = 16 * 1024;
/** Most bytes held back: 16 per byte of the longest text, plus 4096. No real encoder writes a longer spelling. */
const MAX_KEPT_PER_BYTE = 16;
const MORE_KEPT_BYTES = 4096;

/**
 * Replaces each run of overlapping secrets with one {@link REDACTED}. The output does not depend on where the body is
 * cut. Takes linear time, whatever the bytes and the secrets are, and however they are cut.
 */
export function createStreamRedactor(automaton: () => Automaton, filter: PieceFilter): StreamRedactor {
  const kept = new KeptBytes();
  let runs: Run[] = [];
  /** Bytes received so far, and how many of them were output or masked. */
  let came = 0;
  let left = 0;
  let hasFound = false;
  /** Created when the filter first finds something to read closely. */
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
      // A text that begins later is found in the next part, or does not fit because nothing follows.
      if (from >= part.length || (!isFound && ahead?.length === 0)) break;
      reading ??= begin();
      at = reading.read(part, from, Math.min(to, part.length), came);
    }
    came += part.length;
  }

  /** Returns the output before the offset `to`, and keeps the rest. `piece` is the last piece, not kept yet. */
  function outputTo(to: number, piece: Buffer): readonly Buffer[] {
    const parts: Buffer[] = [];
    const keptTo = left + kept.length;
    const give = (from: number, end: number) => {
      // A copy: the buffer of kept bytes is reused.
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

/** Merges the run with those it overlaps; runs that only touch stay separate. */
function addRun(runs: Run[], run: Run): void {
  for (let last = runs.at(-1); last !== undefined && run.start < last.end; last = runs.at(-1)) {
    run.start = Math.min(run.start, last.start);
    run.end = Math.max(run.end, last.end);
    run.isMarked ||= last.isMarked;
    runs.pop();
  }
  runs.push(run);
}

/** A byte queue: added at the end, dropped from the front. Each byte is moved a few times at most. */
class KeptBytes {
  #room = NOTHING;
  #start = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#start;
  }

  /** Valid until the next `add()`. */
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

/**
 * Searches bytes that arrive in pieces for the texts of an automaton: through escapes, in both base64 alphabets (see
 * `canonical()`), and across line breaks. Linear in the bytes read, whatever the texts are. It keeps one position for
 * each byte of the longest text.
 */
class Reading extends Unescape {
  readonly #automaton: Automaton;
  /** Called for each match: where its first byte was written, and the offset after its last. */
  readonly #found: (start: number, end: number) => void;
  readonly #track: Track;
  /** The same without passing over line breaks: a text with one of its own may begin within what goes on behind it. */
  readonly #exact: Track | undefined;
  /** The line break within a text, while only spaces have followed it; else 0. */
  #lineEnd = 0;
  /** A second candidate: a text that begins inside an escape read literally. Dropped at the first byte that differs. */
  #otherState = 0;
  #otherStart = 0;
  #otherFrom = 0;
  /** A remainder that was found, while it has to be followed by more backslashes. */
  #cut: (Pick<Remainder, "minBytes"> & { readonly start: number; readonly end: number }) | undefined;

  constructor(automaton: Automaton, found: (start: number, end: number) => void) {
    super();
    this.#automaton = automaton;
    this.#found = found;
    this.#track = new Track(automaton);
    this.#exact = automaton.hasLineBreak ? new Track(automaton) : undefined;
  }

  /** Most bytes to hold back. */
  get maxKept(): number {
    return MAX_KEPT_PER_BYTE * this.#automaton.longest + MORE_KEPT_BYTES;
  }

  /** Whether no text and no escape has begun. */
  get isIdle(): boolean {
    const isInText = this.#track.state !== 0 || this.#otherState !== 0 || (this.#exact?.state ?? 0) !== 0;
    return !isInText && this.pendingFrom === undefined;
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
      if (this.isIdle) {
        while (at < atLeast && isFirst[bytes[at] as number] === 0) at++;
        if (at >= atLeast) return at;
      }
      if (at >= bytes.length) return at;
      this.push(bytes[at] as number, offset + at);
    }
  }

  /** Drops the texts in progress. */
  forget(): void {
    this.#track.state = 0;
    if (this.#exact !== undefined) this.#exact.state = 0;
    this.#otherState = 0;
    this.#lineEnd = 0;
    this.#cut = undefined;
  }

  /** Where the earliest text in progress begins; `end` when there is none. */
  begunAt(end: number): number {
    return Math.min(
      this.#track.begunAt(end),
      this.#exact?.begunAt(end) ?? end,
      this.#otherState === 0 ? end : this.#otherStart,
      this.#cut?.start ?? end,
      this.pendingFrom ?? end,
    );
  }

  protected take(byte: number, start: number, end: number, isSlash: boolean): void {
    this.#followCut(byte, end, isSlash);
    const letter = canonical(byte);
    if (this.#exact !== undefined) this.#goOnWith(this.#exact, letter, start, end);
    // Undone, a password with `\n` in it has a line break of its own.
    if ((byte === LF || byte === CR) && this.#automaton.follow(this.#track.state, byte) === 0) {
      this.#breakLine(byte);
      return;
    }
    if (this.#lineEnd !== 0) {
      if (byte === 0x20 || byte === 0x09) return;
      this.#lineEnd = 0;
    }
    this.#goOnWith(this.#track, letter, start, end);
    if (this.#otherState !== 0 && start >= this.#otherFrom) this.#goOn(letter, end);
  }

  /**
   * Starts a second candidate at the longest tail of the escape that begins a text, unless the current one is longer.
   */
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
   * Base64 continues on the next line, but not after an empty one. A match of a single letter does not continue either:
   * every fifth line ends with a letter that begins a text, and would be held back. `rests()` adds the texts without
   * that letter instead.
   */
  #breakLine(byte: number): void {
    const isEmpty = this.#lineEnd === LF || this.#lineEnd === byte;
    if (isEmpty || (this.#automaton.depth[this.#track.state] as number) < 2) this.#track.state = 0;
    if (isEmpty) this.#otherState = 0;
    this.#lineEnd = this.#track.state === 0 && this.#otherState === 0 ? 0 : byte;
  }

  #goOnWith(track: Track, letter: number, start: number, end: number): void {
    track.take(letter, start);
    const length = this.#automaton.ends[track.state] as number;
    if (length > 0) this.#found(track.startOf(length), end);
    const remainder = this.#automaton.remainderAt(track.state);
    if (remainder !== undefined) this.#findRemainder(remainder, track.startOf(remainder.text.length), end);
  }

  #goOn(letter: number, end: number): void {
    this.#otherState = this.#automaton.follow(this.#otherState, letter);
    const length = this.#automaton.ends[this.#otherState] as number;
    const depth = this.#automaton.depth[this.#otherState] as number;
    if (length > 0 && length === depth) this.#found(this.#otherStart, end);
    const remainder = this.#automaton.remainderAt(this.#otherState);
    if (remainder !== undefined && remainder.text.length === depth)
      this.#findRemainder(remainder, this.#otherStart, end);
  }

  /** Only whole secrets count: the remainder as written has to be as long as the secret. */
  #findRemainder({ minBytes, isCut }: Remainder, start: number, end: number): void {
    if (isCut) this.#cut = this.#longerCut(start, end, minBytes) ?? { minBytes, start, end };
    else if (end - start >= minBytes) this.#found(start, end);
  }

  /** The cut that begins earlier, if it needs no more bytes: an escape within it, read literally, can begin another. */
  #longerCut(start: number, end: number, minBytes: number) {
    const cut = this.#cut;
    return cut?.end === end && cut.start <= start && cut.start + cut.minBytes <= start + minBytes ? cut : undefined;
  }

  /** Reads what follows a remainder without the backslashes at its end. They are not masked themselves. */
  #followCut(byte: number, end: number, isSlash: boolean): void {
    const cut = this.#cut;
    if (cut === undefined || (byte === BACKSLASH && end - cut.start < cut.minBytes)) return;
    this.#cut = undefined;
    // The letter of an escape behind them is no backslash.
    const slashEnd = byte === BACKSLASH ? end : end - 1;
    if (isSlash && slashEnd - cut.start >= cut.minBytes) this.#found(cut.start, cut.end);
  }
}
