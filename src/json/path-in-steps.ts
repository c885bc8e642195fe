import type { Steps } from "../turns.js";
import { MAX_SEGMENTS, parseIndex } from "./json-path.js";
import type { JsonRange } from "./json-scan.js";
import { kindAt } from "./json-slice.js";
import { ElementCursor, membersInSteps } from "./members-in-steps.js";

/** What `slicePath()` finds, in steps. */
export function* pathInSteps(bytes: Uint8Array, path: string): Steps<JsonRange | undefined> {
  const segments = path.split(".");
  if (segments.length > MAX_SEGMENTS) return undefined;
  let found: JsonRange | undefined = { start: 0, end: bytes.length };
  for (const segment of segments) {
    if (found === undefined) return undefined;
    const { start, end }: JsonRange = found;
    if (kindAt(bytes, start) === "array") found = yield* elementAt(bytes, found, parseIndex(segment));
    else found = (yield* membersInSteps(bytes, start, end, segment)).at(-1);
  }
  return found;
}

function* elementAt(bytes: Uint8Array, array: JsonRange, wanted: number | undefined): Steps<JsonRange | undefined> {
  if (wanted === undefined) return undefined;
  const cursor = new ElementCursor(bytes, array);
  let index = 0;
  for (let found = cursor.goOn(); found !== "end"; found = cursor.goOn()) {
    if (found === "element" && index++ === wanted) return { start: cursor.start, end: cursor.end };
    if (found === "pause" || cursor.isLong) yield;
  }
  return undefined;
}
