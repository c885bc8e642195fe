import { createPace, SLICE_BYTES } from "../lib/chunks.js";
import { atOnce, type Steps } from "../lib/turns.js";
import { type JsonRange, ValueScan } from "./json-scan.js";
import { kindAt, textAt } from "./json-slice.js";

/** The depth to which a request may be nested. Bounded because each segment takes stack. */
const MAX_SEGMENTS = 64;

/** {@link pathInSteps} without pauses. */
export function slicePath(bytes: Uint8Array, path: string): JsonRange | undefined {
  return atOnce(pathInSteps(bytes, path));
}

/**
 * Finds the value at a dotted path such as `rows.0.data.items.1` in valid JSON. Undefined when there is none, or when
 * the path has more than 64 segments.
 *
 * Each segment is a member's name or, in an array, an index in plain decimal. The last of several members with the same
 * name counts, as in `JSON.parse`. A name with a dot in it cannot be reached. It makes one pass over the text, however
 * long the path is.
 */
export function* pathInSteps(bytes: Uint8Array, path: string): Steps<JsonRange | undefined> {
  const segments = path.split(".");
  if (segments.length > MAX_SEGMENTS) return undefined;
  const scan = new ValueScan(bytes, bytes.length);
  const search: Search = { bytes, segments, scan, mayPause: createPace(), found: undefined };
  while (!scan.skip(SLICE_BYTES)) yield;
  yield* searchValue(search, scan.at, 0);
  return search.found;
}

interface Search {
  readonly bytes: Uint8Array;
  readonly segments: readonly string[];
  readonly scan: ValueScan;
  readonly mayPause: (at: number) => boolean;
  found: JsonRange | undefined;
}

/** Looks for the segments from `level` on in the value at `start`. Returns where the value ends. */
function* searchValue(search: Search, start: number, level: number): Steps<number> {
  search.found = undefined;
  const { bytes, segments, scan } = search;
  const segment = segments[level];
  const kind = kindAt(bytes, start);
  if (segment !== undefined && (kind === "object" || kind === "array")) {
    return yield* searchInside(search, start, level, segment, kind === "object");
  }
  scan.begin(start);
  while (!scan.goOn(SLICE_BYTES)) yield;
  if (segment === undefined) search.found = { start, end: scan.at };
  return scan.at;
}

function* searchInside(
  search: Search,
  start: number,
  level: number,
  segment: string,
  isObject: boolean,
): Steps<number> {
  const { bytes, scan, mayPause } = search;
  const name = Buffer.from(segment);
  const index = parseIndex(segment);
  scan.begin(start + 1);
  for (let count = 0; ; count++) {
    let isWanted = count === index;
    if (isObject) {
      while (!scan.goOn(SLICE_BYTES)) yield;
      isWanted = !scan.isOver && isNamed(bytes, { start: scan.start, end: scan.at }, segment, name);
      scan.begin();
    }
    while (!scan.skip(SLICE_BYTES)) yield;
    if (scan.isOver) return scan.at + 1;
    if (isWanted) scan.begin(yield* searchValue(search, scan.at, level + 1));
    // Not in a function: a generator for each value takes as long as the rest.
    else while (!scan.goOn(SLICE_BYTES)) yield;
    if (mayPause(scan.at)) yield;
    scan.begin();
  }
}

/** Parses an array index in plain decimal, up to nine digits; undefined for anything else. */
function parseIndex(segment: string): number | undefined {
  return /^(?:0|[1-9]\d{0,8})$/.test(segment) ? Number(segment) : undefined;
}

/** One UTF-16 unit as JSON: `\u0061`. */
const MAX_UNIT_BYTES = 6;

/** Compares bytes, so that a large object does not cost one string per member. Decodes only names with escapes. */
function isNamed(bytes: Uint8Array, name: JsonRange, key: string, keyBytes: Uint8Array): boolean {
  const length = name.end - name.start - 2;
  if (length > MAX_UNIT_BYTES * key.length) return false;
  let isSame = length === keyBytes.length;
  for (let at = name.start + 1; at < name.end - 1; at++) {
    if (bytes[at] === 0x5c) return textAt(bytes, name) === key;
    isSame &&= bytes[at] === keyBytes[at - name.start - 1];
  }
  return isSame;
}
