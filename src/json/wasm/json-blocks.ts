/*
 * Whether bytes are JSON (RFC 8259), sixty-four at a time. The files here are AssemblyScript: `npm run wasm` makes
 * ../json-blocks-wasm.ts of them.
 *
 * A block becomes sets of positions, one bit per byte, lowest first, and nearly every rule of the grammar one expression
 * over sets: after what a token ends says what the next one may be. Only brackets, numbers, literals and escapes are
 * looked at one by one. It needs a quarter of the time of the byte-by-byte machine (about 1.5 GB/s to 0.4).
 *
 * UTF-8 is the caller's to check.
 */

import { areEscapesGood, beginEscapes, doesEscapeGoOn, escapedOf } from "./escapes";
import { beginNesting, isNested } from "./nesting";
import { areScalarsGood, beginScalars, doesScalarGoOn, tableAt } from "./scalars";
import { controls, digits, equalTo, folded, insideOf, whitespace } from "./sets";
import { areTokensGood, beginTokens, mayEnd } from "./tokens";

export { tableAt };

const BLOCK: i32 = 64;
/** Where the caller puts the next bytes; what is left of the ones before stands in front of them. */
const INPUT_BYTES: i32 = 65536;
const INPUT: i32 = memory.data(INPUT_BYTES + BLOCK, 16) as i32;

/** All ones inside of a string. */
let inString: u64 = 0;
/** How many bytes wait for the rest of their block. */
let waiting: i32 = 0;
let isFaulty: bool = false;

/** Where the next bytes go: at most {@link inputBytes}. */
export function inputAt(): i32 {
  return INPUT + waiting;
}

export function inputBytes(): i32 {
  return INPUT_BYTES;
}

/** Forgets what was read. The states of the grammar in which a value begins, and after a whole one. */
export function begin(valueState: i32, afterState: i32): void {
  beginTokens();
  beginNesting();
  beginEscapes();
  beginScalars(valueState, afterState);
  inString = 0;
  waiting = 0;
  isFaulty = false;
}

/** Judges the bytes that were put at {@link inputAt}. False when the text so far cannot be the beginning of JSON. */
export function push(length: i32): bool {
  const end = INPUT + waiting + length;
  let at = INPUT;
  for (; at + BLOCK <= end && !isFaulty; at += BLOCK) isFaulty = !isBlockGood(at);
  if (isFaulty) return false;
  waiting = end - at;
  memory.copy(INPUT, at, waiting);
  return true;
}

/** Whether all the bytes are one JSON value. */
export function end(): bool {
  if (isFaulty) return false;
  // The end of the text ends a number as white space does.
  memory.fill(INPUT + waiting, 0x20, BLOCK - waiting);
  return isBlockGood(INPUT) && inString === 0 && !isNested() && mayEnd();
}

function isBlockGood(at: i32): bool {
  const a = v128.load(at);
  const b = v128.load(at, 16);
  const c = v128.load(at, 32);
  const d = v128.load(at, 48);

  const backslashes = equalTo(a, b, c, d, 0x5c);
  let escaped: u64 = 0;
  if (backslashes !== 0 || doesEscapeGoOn()) {
    escaped = escapedOf(backslashes);
    if (!areEscapesGood(at, escaped)) return false;
  }
  const quotes = equalTo(a, b, c, d, 0x22) & ~escaped;
  const strings = insideOf(quotes) ^ inString;
  inString = ((strings as i64) >> 63) as u64;
  if ((controls(a, b, c, d) & strings) !== 0 || (backslashes & ~strings) !== 0) return false;

  const outside = ~(strings | quotes);
  const spaces = whitespace(a, b, c, d) & outside;
  const opening = equalTo(folded(a), folded(b), folded(c), folded(d), 0x7b) & outside;
  const closing = equalTo(folded(a), folded(b), folded(c), folded(d), 0x7d) & outside;
  const commas = equalTo(a, b, c, d, 0x2c) & outside;
  const colons = equalTo(a, b, c, d, 0x3a) & outside;
  const scalars = outside & ~(spaces | opening | closing | commas | colons);

  const wasScalar = doesScalarGoOn();
  const afterScalars = ((scalars << 1) | wasScalar) & ~scalars;
  if ((scalars | wasScalar) !== 0 && !areScalarsGood(at, scalars, digits(a, b, c, d))) return false;

  return areTokensGood(at, strings, quotes, spaces, opening, closing, commas, colons, scalars, afterScalars);
}
