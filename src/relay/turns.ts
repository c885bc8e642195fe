import { setImmediate as nextTurn } from "node:timers/promises";
import { bufferOf } from "../buffer-of.js";
import { type Bytes, bytesOf } from "../chunks.js";
import { createJsonChecker, isJson } from "../json/json-checker.js";
import type { Redactor } from "../telemetry/redact.js";

/** Bytes looked at in one turn of the event loop: about a millisecond's work, so that other calls are not held up. */
const TURN_BYTES = 1024 * 1024;
/** Bytes looked at together: both ways of looking find them in the processor's cache. */
const SLICE_BYTES = 64 * 1024;

/** A body without secrets, and whether it is one valid JSON value. */
export interface JsonAnswer {
  readonly bytes: Bytes;
  readonly isJson: boolean;
}

/** Takes secrets out and judges what is left; other work gets its turn in between when there is much. */
export function judgedJson(body: Bytes, redactor: Redactor): JsonAnswer | Promise<JsonAnswer> {
  if (body.length <= SLICE_BYTES) return judgedWhole(body, redactor);
  return body.length <= TURN_BYTES ? judgedAtOnce(body, redactor) : judgedInTurns(body, redactor);
}

/** One slice, as most answers are. */
function judgedWhole(body: Bytes, redactor: Redactor): JsonAnswer {
  const bytes = body.concat();
  if (redactor.mayOccurIn(bytes)) return judgedAgain(redactor.bytes(bytes));
  return { bytes: body, isJson: isJson(bytes) };
}

function judgedAtOnce(body: Bytes, redactor: Redactor): JsonAnswer {
  const hasSecret = createSearch(redactor);
  const slices = [...slicesOf(body)];
  if (slices.some(hasSecret)) return judgedAgain(redactor.bytes(body.concat()));
  return { bytes: body, isJson: isJson(...slices) };
}

/** Only where a secret is found is the whole gone through at once, and then once more. */
async function judgedInTurns(body: Bytes, redactor: Redactor): Promise<JsonAnswer> {
  const checker = createJsonChecker();
  const hasSecret = createSearch(redactor);
  let isGood = true;
  let looked = 0;
  for (const slice of slicesOf(body)) {
    if (looked >= TURN_BYTES) {
      await nextTurn();
      looked = 0;
    }
    looked += slice.length;
    if (hasSecret(slice)) return judgedAgain(redactor.bytes(body.concat()));
    isGood &&= checker.push(slice);
  }
  return { bytes: body, isJson: isGood && checker.end() };
}

/** What was redacted may have lost its form. */
function judgedAgain(redacted: Buffer): JsonAnswer {
  return { bytes: bytesOf(redacted), isJson: isJson(redacted) };
}

function* slicesOf({ pieces }: Bytes): Generator<Buffer> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE_BYTES) {
      yield bufferOf(piece.subarray(at, at + SLICE_BYTES));
    }
  }
}

/** Asked for one slice after the other, tells whether a secret may be in it, or across its beginning. */
function createSearch({ overlap: overlapOf, mayOccurIn }: Redactor): (slice: Buffer) => boolean {
  const overlap = overlapOf();
  let tail: Buffer | undefined;
  return (slice) => {
    const seam = tail === undefined ? undefined : Buffer.concat([tail, slice.subarray(0, overlap)]);
    tail = slice.length >= overlap ? slice.subarray(slice.length - overlap) : (seam ?? slice).subarray(-overlap);
    return mayOccurIn(slice) || (seam !== undefined && mayOccurIn(seam));
  };
}
