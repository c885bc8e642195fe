import {
  createJsonText,
  type JsonRange,
  type JsonText,
  spaceEnd,
  valueEnd,
  visitElements,
  visitMembers,
} from "./json-scan.js";
import { kindAt, textAt } from "./json-slice.js";

/** As deep as a request may be nested; each segment takes stack. */
export const MAX_SEGMENTS = 64;

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
export function parseIndex(segment: string): number | undefined {
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
export function isNamed(bytes: Uint8Array, name: JsonRange, key: string, keyBytes: Uint8Array): boolean {
  let isSame = name.end - name.start - 2 === keyBytes.length;
  for (let at = name.start + 1; at < name.end - 1; at++) {
    if (bytes[at] === 0x5c) return textAt(bytes, name) === key;
    isSame &&= bytes[at] === keyBytes[at - name.start - 1];
  }
  return isSame;
}
