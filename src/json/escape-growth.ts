import type { Bytes } from "../lib/chunks.js";
import { slicesOf } from "../lib/slices.js";
import type { Steps } from "../lib/turns.js";
import { plainRunEnd, viewOf } from "./plain-run.js";

/** A control character is written as `\u0001`, in six bytes; RFC 8259 section 7 has short ones for some. */
const CONTROL = 5;
const SHORT = 1;
const SHORT_ONES: ReadonlySet<number> = new Set(Buffer.from('\b\t\n\f\r"\\'));

/** How many bytes longer text in UTF-8 becomes when it is written as a string of JSON, in steps. */
export function* escapeGrowth(utf8: Bytes): Steps<number> {
  let growth = 0;
  for (const slice of slicesOf(utf8)) {
    growth += growthOf(slice);
    yield;
  }
  return growth;
}

function growthOf(utf8: Uint8Array): number {
  const view = viewOf(utf8);
  let growth = 0;
  for (let at = plainRunEnd(view, 0, utf8.length); at < utf8.length; at = plainRunEnd(view, at + 1, utf8.length)) {
    growth += SHORT_ONES.has(utf8[at] as number) ? SHORT : CONTROL;
  }
  return growth;
}
