import { bufferOf } from "./buffer-of.js";
import type { Bytes } from "./chunks.js";
import type { Steps } from "./turns.js";

/** Bytes looked at together: several ways of looking find them in the processor's cache, and none takes a millisecond. */
export const SLICE_BYTES = 64 * 1024;

/** What is larger is worked on in turns of the event loop: up to here all of it takes about as long as one turn may. */
export const LARGE_BYTES = 256 * 1024;

/** Tells work on something large when it may pause: once it is a slice further than the last time. */
export function createPace(start = 0): (at: number) => boolean {
  let pausedAt = start;
  return (at) => {
    if (at - pausedAt < SLICE_BYTES) return false;
    pausedAt = at;
    return true;
  };
}

/** Bytes cut into slices, without a copy. */
export function* slicesOf({ pieces }: Pick<Bytes, "pieces">): Generator<Buffer, void, undefined> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      yield bufferOf(piece.subarray(at, at + SLICE_BYTES));
    }
  }
}

/**
 * Bytes in one piece, of which they consist from then on, in steps: copying ten mebibytes into memory that is new takes
 * longer than a turn may. Whoever goes on holding them holds them once.
 */
export function* joinedInSteps(bytes: Bytes): Steps<Buffer> {
  if (bytes.length <= SLICE_BYTES || bytes.pieces.length === 1) return bytes.concat();
  const joined = Buffer.allocUnsafeSlow(bytes.length);
  let at = 0;
  for (const slice of slicesOf(bytes)) {
    at += slice.copy(joined, at);
    yield;
  }
  bytes.becomeOne(joined);
  return joined;
}
