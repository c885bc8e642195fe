import { createPace, SLICE_BYTES } from "../lib/chunks.js";
import { atOnce, type Steps } from "../lib/turns.js";
import { createJsonText, endInSteps, type JsonRange, type JsonText, spaceEnd, ValueScan } from "./json-scan.js";
import { kindAt, textAt } from "./json-slice.js";

/** The depth to which a request may be nested. Bounded because each segment takes stack. */
const MAX_SEGMENTS = 64;
const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSING_BRACKET = 0x5d;

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
  const text = createJsonText(bytes, bytes.length);
  const search: Search = { text, segments, scan: new ValueScan(text), mayPause: createPace(), found: undefined };
  yield* searchValue(search, spaceEnd(text, 0), 0);
  return search.found;
}

interface Search {
  readonly text: JsonText;
  readonly segments: readonly string[];
  readonly scan: ValueScan;
  readonly mayPause: (at: number) => boolean;
  found: JsonRange | undefined;
}

/** Looks for the segments from `level` on in the value at `start`. Returns where the value ends. */
function* searchValue(search: Search, start: number, level: number): Steps<number> {
  search.found = undefined;
  const { text, segments, scan } = search;
  const segment = segments[level];
  const kind = kindAt(text.bytes, start);
  if (segment !== undefined && kind === "object") return yield* searchObject(search, start, level, segment);
  if (segment !== undefined && kind === "array") return yield* searchArray(search, start, level, segment);
  const end = yield* endInSteps(scan, start);
  if (segment === undefined) search.found = { start, end };
  return end;
}

function* searchObject(search: Search, start: number, level: number, segment: string): Steps<number> {
  const { text, scan } = search;
  const { bytes, end } = text;
  const wanted = Buffer.from(segment);
  let at = spaceEnd(text, start + 1);
  while (at < end && bytes[at] === QUOTE) {
    // Not with endInSteps(): names are short, and a generator for each takes as long as the rest.
    scan.begin(at);
    while (!scan.goOn(SLICE_BYTES)) yield;
    const name = { start: at, end: scan.at };
    const valueStart = spaceEnd(text, spaceEnd(text, name.end) + 1);
    const isWanted = isNamed(bytes, name, segment, wanted);
    at = yield* isWanted ? searchValue(search, valueStart, level + 1) : endInSteps(scan, valueStart);
    if (search.mayPause(at)) yield;
    at = spaceEnd(text, at);
    if (bytes[at] === COMMA) at = spaceEnd(text, at + 1);
  }
  return at + 1;
}

function* searchArray(search: Search, start: number, level: number, segment: string): Steps<number> {
  const { text, scan } = search;
  const { bytes, end } = text;
  const wanted = parseIndex(segment);
  let at = spaceEnd(text, start + 1);
  for (let index = 0; at < end && bytes[at] !== CLOSING_BRACKET; index++) {
    at = yield* index === wanted ? searchValue(search, at, level + 1) : endInSteps(scan, at);
    if (search.mayPause(at)) yield;
    at = spaceEnd(text, at);
    if (bytes[at] !== COMMA) break;
    at = spaceEnd(text, at + 1);
  }
  return at + 1;
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
