import { bufferOf, NOTHING } from "../lib/chunks.js";
import type { Automaton } from "./automaton.js";
import { AHEAD_BYTES, PART_BYTES, type PieceFilter } from "./piece-filter.js";
import { Reading } from "./reading.js";

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
    let at = reading?.isActive ? reading.read(part, 0, 0, came) : 0;
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
        reading.flush();
        reading.forget();
        begun = came;
      }
      return outputTo(begun, bufferOf(piece));
    },
    end() {
      reading?.flush();
      return outputTo(came, NOTHING);
    },
    hasFound: () => hasFound,
  };
}

/**
 * Merges the run with those it overlaps; runs that only touch stay separate. A text with escapes may be found after one
 * that ends later, so the run does not always belong at the end.
 */
function addRun(runs: Run[], run: Run): void {
  let from = runs.length;
  while (from > 0 && (runs[from - 1] as Run).end > run.start) from--;
  let to = from;
  for (let one = runs[to]; one !== undefined && one.start < run.end; one = runs[++to]) {
    run.start = Math.min(run.start, one.start);
    run.end = Math.max(run.end, one.end);
    run.isMarked ||= one.isMarked;
  }
  runs.splice(from, to - from, run);
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
