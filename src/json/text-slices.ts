import { type Bytes, bufferOf, SLICE_BYTES, slicesOf } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { type JsonRange, plainRunEnd, viewOf } from "./json-scan.js";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ESCAPE_U = 0x75;
/** Length of `\uXXXX`, the longest escape. */
const ESCAPE_BYTES = 6;

/**
 * The text that `textAt()` returns, in slices, each from at most `bytes` bytes of the JSON. No slice ends within a
 * character or between the halves of an escaped surrogate pair.
 *
 * @param bytes at least 16.
 */
export function* textSlices(
  json: Uint8Array,
  { start, end }: JsonRange,
  bytes: number = SLICE_BYTES,
): Generator<string, void, undefined> {
  const isString = json[start] === QUOTE;
  const stop = isString ? end - 1 : end;
  for (let at = isString ? start + 1 : start; at < stop; ) {
    const cut = at + bytes >= stop ? stop : cutBefore(json, at, at + bytes, isString);
    const slice = bufferOf(json.subarray(at, cut));
    yield isString && slice.includes(BACKSLASH) ? JSON.parse(`"${slice.toString()}"`) : slice.toString();
    at = cut;
  }
}

/** The last place up to `most` where a slice may end. */
function cutBefore(json: Uint8Array, from: number, most: number, isString: boolean): number {
  let cut = most;
  // Every byte of a character except the first is 10xxxxxx (RFC 3629 section 3).
  while (((json[cut] as number) & 0xc0) === 0x80) cut--;
  if (!isString) return cut;
  for (let before = escapeBefore(json, from, cut); before !== undefined; before = escapeBefore(json, from, cut)) {
    const ends = before + (json[before + 1] === ESCAPE_U ? ESCAPE_BYTES : 2);
    if (ends < cut || (ends === cut && !(HIGH.test(escapeAt(json, before)) && LOW.test(escapeAt(json, cut))))) break;
    cut = before;
  }
  return cut;
}

/** Where the last escape that may reach `cut` begins; undefined when there is none. */
function escapeBefore(json: Uint8Array, from: number, cut: number): number | undefined {
  let last = cut - 1;
  while (last >= Math.max(from, cut - ESCAPE_BYTES) && json[last] !== BACKSLASH) last--;
  let first = last;
  while (first >= from && json[first] === BACKSLASH) first--;
  // In a run of backslashes every second one is escaped by the one before it.
  return (last - first) % 2 === 1 && last >= cut - ESCAPE_BYTES ? last : undefined;
}

function escapeAt(json: Uint8Array, at: number): string {
  return bufferOf(json.subarray(at, at + ESCAPE_BYTES)).toString("latin1");
}

/** The two halves of a surrogate pair. */
const HIGH = /^\\u[dD][89abAB]/;
const LOW = /^\\u[dD][c-fC-F]/;

/** Extra bytes: a control character is escaped as `\u0001`, in six bytes, or as a short escape (RFC 8259 section 7). */
const CONTROL = 5;
const SHORT = 1;
const SHORT_ONES: ReadonlySet<number> = new Set(Buffer.from('\b\t\n\f\r"\\'));

/** How many bytes UTF-8 text grows by when it is escaped as a JSON string, in steps. */
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
