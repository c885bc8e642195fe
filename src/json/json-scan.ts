import { plainRunEnd, viewOf } from "./plain-run.js";

// Everything here reads JSON that a validator has accepted. Over any other text it still ends, with any result.

/** JSON to scan: positions are indexes into `bytes`; nothing from `end` on is read. */
export interface JsonText {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly end: number;
}

/** A piece of a text: `start` is the first byte, `end` the one after the last. */
export interface JsonRange {
  readonly start: number;
  readonly end: number;
}

/** Makes `bytes`, up to `end`, ready to scan. */
export function createJsonText(bytes: Uint8Array, end: number): JsonText {
  return { bytes, view: viewOf(bytes), end };
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/**
 * Calls `visit` for each member of the object at `start`, with its name (a string with its quotes) and where its value
 * starts; `visit` answers where the value ends. Returns where the object ends.
 */
export function visitMembers(
  text: JsonText,
  start: number,
  visit: (name: JsonRange, valueStart: number) => number,
): number {
  const { bytes, end } = text;
  let at = spaceEnd(text, start + 1);
  while (at < end && bytes[at] === QUOTE) {
    const name = { start: at, end: stringEnd(text, at) };
    const colon = spaceEnd(text, name.end);
    at = spaceEnd(text, visit(name, spaceEnd(text, colon + 1)));
    if (bytes[at] === COMMA) at = spaceEnd(text, at + 1);
  }
  return at + 1;
}

/**
 * Calls `visit` for each element of the array at `start`, with where it starts and its index; `visit` answers where the
 * element ends. Returns where the array ends.
 */
export function visitElements(
  text: JsonText,
  start: number,
  visit: (elementStart: number, index: number) => number,
): number {
  const { bytes, end } = text;
  let at = spaceEnd(text, start + 1);
  for (let index = 0; at < end && bytes[at] !== 0x5d; index++) {
    at = spaceEnd(text, visit(at, index));
    if (bytes[at] === COMMA) at = spaceEnd(text, at + 1);
    else break;
  }
  return at + 1;
}

/** Where the value that starts at `start` ends. Nesting of any depth takes no stack. */
export function valueEnd(text: JsonText, start: number): number {
  const first = text.bytes[start] as number;
  if (first === QUOTE) return stringEnd(text, start);
  return isOpening(first) ? containerEnd(text, start) : scalarEnd(text, start);
}

/** Where the string that begins with the quote at `start` ends: after its closing quote. */
export function stringEnd({ bytes, view, end }: JsonText, start: number): number {
  let at = plainRunEnd(view, start + 1, end);
  while (at < end && bytes[at] !== QUOTE) at = plainRunEnd(view, at + (bytes[at] === BACKSLASH ? 2 : 1), end);
  return Math.min(at + 1, end);
}

/** Index of the first byte from `from` on that is not whitespace. */
export function spaceEnd({ bytes, end }: JsonText, from: number): number {
  let at = from;
  while (at < end && (bytes[at] as number) <= 0x20) at++;
  return at;
}

function containerEnd(text: JsonText, start: number): number {
  const { bytes, end } = text;
  let depth = 0;
  let at = start;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    at++;
    if (isOpening(byte)) depth++;
    else if (isClosing(byte) && --depth === 0) return at;
  }
  return end;
}

/** Numbers and literals stop at whitespace, a comma or a closing bracket. */
function scalarEnd({ bytes, end }: JsonText, start: number): number {
  let at = start;
  while (at < end) {
    const byte = bytes[at] as number;
    if (byte <= 0x20 || byte === COMMA || isClosing(byte)) break;
    at++;
  }
  return at;
}

/** `[` or `{`: they differ in the bit 0x20 only. */
function isOpening(byte: number): boolean {
  return (byte | 0x20) === 0x7b;
}

/** `]` or `}`: likewise. */
function isClosing(byte: number): boolean {
  return (byte | 0x20) === 0x7d;
}
