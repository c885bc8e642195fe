import { bufferOf } from "../buffer-of.js";

/** What stands in an answer where a token was. */
export const REDACTED = "[redacted]";

const REPLACEMENT = Buffer.from(REDACTED, "latin1");
const NOTHING = Buffer.alloc(0);

/** Spellings of a secret as bytes, none of them empty, that all hold the same anchor. */
export interface Needles {
  /** Where it is not, none of the forms is, and one search is enough. May be empty. */
  readonly anchor: Buffer;
  readonly forms: readonly Buffer[];
}

/** Takes secrets out of a body that comes in pieces, however it is cut. */
export interface StreamRedactor {
  /** What may leave now. Only bytes with which a secret could begin are kept back, so that an event is not delayed. */
  push(piece: Uint8Array): Buffer;
  /** What was kept back, and turned out to be no secret. */
  end(): Buffer;
}

/** From the first byte to the one behind the last. */
interface Range {
  start: number;
  end: number;
}

/**
 * Replaces each run of bytes that spelled secrets cover by one mark. What comes out is the same whatever the pieces are;
 * never more is held than the longest form less one byte, and one piece.
 */
export function createStreamRedactor(groups: readonly Needles[]): StreamRedactor {
  let kept = NOTHING;
  /** How many of the kept bytes belong to a run whose mark has left already. */
  let covered = 0;
  return {
    push(piece) {
      const input = kept.length === 0 ? bufferOf(piece) : Buffer.concat([kept, piece]);
      const runs = runsIn(input, groups, covered);
      const cut = undecidedFrom(input, groups);
      const output = replaceRuns(input, runs, cut, covered > 0);
      const last = runs.findLast(({ start }) => start < cut) ?? (covered > 0 ? runs[0] : undefined);
      covered = Math.max(0, (last?.end ?? 0) - cut);
      // A copy: what is kept must not hold on to the whole piece.
      kept = cut === input.length ? NOTHING : Buffer.from(input.subarray(cut));
      return output;
    },
    end() {
      const output = replaceRuns(kept, runsIn(kept, groups, covered), kept.length, covered > 0);
      kept = NOTHING;
      covered = 0;
      return output;
    },
  };
}

/** The bytes of a whole body without secrets; the same bytes when there are none in them. */
export function redactBytes(input: Buffer, groups: readonly Needles[]): Buffer {
  return replaceRuns(input, runsIn(input, groups, 0), input.length, false);
}

/** The runs that occurrences cover, in order; those that overlap are one, those that only touch are two. */
function runsIn(input: Buffer, groups: readonly Needles[], covered: number): Range[] {
  const found = covered > 0 ? [{ start: 0, end: covered }] : [];
  for (const { anchor, forms } of groups) {
    if (!input.includes(anchor)) continue;
    for (const form of forms) addRuns(found, input, form);
  }
  if (found.length < 2) return found;
  found.sort((a, b) => a.start - b.start);
  const runs: Range[] = [];
  for (const range of found) {
    const last = runs.at(-1);
    if (last === undefined || range.start >= last.end) runs.push(range);
    else last.end = Math.max(last.end, range.end);
  }
  return runs;
}

function addRuns(found: Range[], input: Buffer, form: Buffer): void {
  for (let start = input.indexOf(form); start !== -1; ) {
    let end = start + form.length;
    // A form that overlaps itself: the last one that begins in the run makes it longer, and so on.
    for (let next = input.lastIndexOf(form, end - 1); next + form.length > end; ) {
      end = next + form.length;
      next = input.lastIndexOf(form, end - 1);
    }
    found.push({ start, end });
    start = input.indexOf(form, end);
  }
}

/** Where the longest end of the input begins that could be the beginning of a secret. */
function undecidedFrom(input: Buffer, groups: readonly Needles[]): number {
  let cut = input.length;
  for (const { forms } of groups) {
    for (const form of forms) cut = Math.min(cut, beginningAt(input, form, cut));
  }
  return cut;
}

function beginningAt(input: Buffer, form: Buffer, before: number): number {
  const first = form[0] as number;
  let at = input.indexOf(first, Math.max(0, input.length - form.length + 1));
  while (at !== -1 && at < before) {
    if (input.compare(form, 0, input.length - at, at) === 0) return at;
    at = input.indexOf(first, at + 1);
  }
  return input.length;
}

/** @param isMarked whether the run at the very beginning has its mark already. */
function replaceRuns(input: Buffer, runs: readonly Range[], to: number, isMarked: boolean): Buffer {
  if (runs.length === 0) return to === input.length ? input : input.subarray(0, to);
  const parts: Buffer[] = [];
  let from = 0;
  for (const { start, end } of runs) {
    if (start >= to) break;
    parts.push(input.subarray(from, start));
    if (start > 0 || !isMarked) parts.push(REPLACEMENT);
    from = Math.min(end, to);
  }
  parts.push(input.subarray(from, to));
  return Buffer.concat(parts);
}
