import { createPace } from "../lib/chunks.js";
import type { Steps } from "../lib/turns.js";
import { isNamed, MAX_SEGMENTS, parseIndex } from "./json-path.js";
import { createJsonText, type JsonRange, type JsonText, spaceEnd, stringEnd } from "./json-scan.js";
import { kindAt } from "./json-slice.js";
import { endInSteps, ValueScan } from "./value-scan.js";

const QUOTE = 0x22;
const COMMA = 0x2c;
const CLOSING_BRACKET = 0x5d;

/** What `slicePath()` finds, in steps; it, too, goes over the text once. */
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
    const name = { start: at, end: stringEnd(text, at) };
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
