import { createPace } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import {
  createJsonText,
  endInSteps,
  type JsonRange,
  type JsonText,
  spaceEnd,
  stringEnd,
  ValueScan,
  valueEnd,
  visitElements,
  visitMembers,
} from "./json-scan.js";
import { kindAt, textAt } from "./json-slice.js";

/** As deep as a request may be nested; each segment takes stack. */
const MAX_SEGMENTS = 64;

/**
 * Where the value stands that a dotted path names, in valid JSON: `rows.0.data.items.1`. Undefined when there is none,
 * or when the path has more than 64 segments.
 *
 * Each segment is a member's name or, in an array, an index in plain decimal. Of members with the same name the last
 * one counts, as in `JSON.parse`. A name with a dot in it cannot be reached. One pass over the text, however long the
 * path is.
 */
export function slicePath(bytes: Uint8Array, path: string): JsonRange | undefined {
  const segments = path.split(".");
  if (segments.length > MAX_SEGMENTS) return undefined;
  const text = createJsonText(bytes, bytes.length);
  const search: Search = { text, segments, found: undefined };
  searchValue(search, spaceEnd(text, 0), 0);
  return search.found;
}

/** An index as a path writes it; undefined for anything else. */
function parseIndex(segment: string): number | undefined {
  return /^(?:0|[1-9]\d{0,8})$/.test(segment) ? Number(segment) : undefined;
}

interface Search {
  readonly text: JsonText;
  readonly segments: readonly string[];
  found: JsonRange | undefined;
}

/** Looks for the segments from `level` on in the value at `start`. Returns where the value ends. */
function searchValue(search: Search, start: number, level: number): number {
  search.found = undefined;
  const { text, segments } = search;
  const segment = segments[level];
  if (segment === undefined) {
    search.found = { start, end: valueEnd(text, start) };
    return search.found.end;
  }
  switch (kindAt(text.bytes, start)) {
    case "object":
      return searchObject(search, start, level, segment);
    case "array":
      return searchArray(search, start, level, segment);
    default:
      return valueEnd(text, start);
  }
}

function searchArray(search: Search, start: number, level: number, segment: string): number {
  const wanted = parseIndex(segment);
  return visitElements(search.text, start, (elementStart, index) =>
    index === wanted ? searchValue(search, elementStart, level + 1) : valueEnd(search.text, elementStart),
  );
}

function searchObject(search: Search, start: number, level: number, segment: string): number {
  const wanted = Buffer.from(segment);
  return visitMembers(search.text, start, (name, valueStart) =>
    isNamed(search.text.bytes, name, segment, wanted)
      ? searchValue(search, valueStart, level + 1)
      : valueEnd(search.text, valueStart),
  );
}

/** Compares bytes, so that a large object costs no string per member; only names with escapes are decoded. */
function isNamed(bytes: Uint8Array, name: JsonRange, key: string, keyBytes: Uint8Array): boolean {
  let isSame = name.end - name.start - 2 === keyBytes.length;
  for (let at = name.start + 1; at < name.end - 1; at++) {
    if (bytes[at] === 0x5c) return textAt(bytes, name) === key;
    isSame &&= bytes[at] === keyBytes[at - name.start - 1];
  }
  return isSame;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSING_BRACKET = 0x5d;

/** What `slicePath()` finds, in steps; it, too, goes over the text once. */
export function* pathInSteps(bytes: Uint8Array, path: string): Steps<JsonRange | undefined> {
  const segments = path.split(".");
  if (segments.length > MAX_SEGMENTS) return undefined;
  const text = createJsonText(bytes, bytes.length);
  const search: SteppedSearch = { text, segments, scan: new ValueScan(text), mayPause: createPace(), found: undefined };
  yield* stepThroughValue(search, spaceEnd(text, 0), 0);
  return search.found;
}

interface SteppedSearch {
  readonly text: JsonText;
  readonly segments: readonly string[];
  readonly scan: ValueScan;
  readonly mayPause: (at: number) => boolean;
  found: JsonRange | undefined;
}

/** Looks for the segments from `level` on in the value at `start`. Returns where the value ends. */
function* stepThroughValue(search: SteppedSearch, start: number, level: number): Steps<number> {
  search.found = undefined;
  const { text, segments, scan } = search;
  const segment = segments[level];
  const kind = kindAt(text.bytes, start);
  if (segment !== undefined && kind === "object") return yield* stepThroughObject(search, start, level, segment);
  if (segment !== undefined && kind === "array") return yield* stepThroughArray(search, start, level, segment);
  const end = yield* endInSteps(scan, start);
  if (segment === undefined) search.found = { start, end };
  return end;
}

function* stepThroughObject(search: SteppedSearch, start: number, level: number, segment: string): Steps<number> {
  const { text, scan } = search;
  const { bytes, end } = text;
  const wanted = Buffer.from(segment);
  let at = spaceEnd(text, start + 1);
  while (at < end && bytes[at] === QUOTE) {
    const name = { start: at, end: stringEnd(text, at) };
    const valueStart = spaceEnd(text, spaceEnd(text, name.end) + 1);
    const isWanted = isNamed(bytes, name, segment, wanted);
    at = yield* isWanted ? stepThroughValue(search, valueStart, level + 1) : endInSteps(scan, valueStart);
    if (search.mayPause(at)) yield;
    at = spaceEnd(text, at);
    if (bytes[at] === COMMA) at = spaceEnd(text, at + 1);
  }
  return at + 1;
}

function* stepThroughArray(search: SteppedSearch, start: number, level: number, segment: string): Steps<number> {
  const { text, scan } = search;
  const { bytes, end } = text;
  const wanted = parseIndex(segment);
  let at = spaceEnd(text, start + 1);
  for (let index = 0; at < end && bytes[at] !== CLOSING_BRACKET; index++) {
    at = yield* index === wanted ? stepThroughValue(search, at, level + 1) : endInSteps(scan, at);
    if (search.mayPause(at)) yield;
    at = spaceEnd(text, at);
    if (bytes[at] !== COMMA) break;
    at = spaceEnd(text, at + 1);
  }
  return at + 1;
}
