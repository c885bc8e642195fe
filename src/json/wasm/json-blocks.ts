/*
 * Validates JSON (RFC 8259), 64 bytes at a time. The files here are AssemblyScript: `npm run wasm` compiles them to
 * ../json-blocks-wasm.ts.
 *
 * Each block is turned into bit sets of positions (one bit per byte, lowest first), and nearly every grammar rule is an
 * expression over these sets: what has just ended determines which token may come next. Only brackets, literals and
 * escapes are handled one by one. This takes a quarter of the time of a byte-by-byte state machine (2.7 GB/s instead of
 * 0.65).
 *
 * Speed depends on the number of instructions per block and on branch mispredictions. So the code that each block needs
 * is inlined into one function, and one test decides whether a block needs more.
 *
 * The caller checks UTF-8.
 */

import { areScalarsGood, beginScalars, wasInScalar } from "./scalars";
import { controls, digitsOf, equalTo, insideOf, isAnySpecial, operatorsOf, whitespace, withBit } from "./sets";
import {
  areTokensGood,
  beginLimits,
  beginNesting,
  beginTokens,
  isMisnested,
  isNested,
  isWithinLimits,
  mayEnd,
  nameStarts,
  objectsOf,
  passBlock,
} from "./tokens";

export { isLimitOfKeys, limitPassedAt } from "./tokens";

const BLOCK: i32 = 64;
/** Bytes after a block that must be known to judge it: the rest of a literal and the byte after it. */
const AHEAD: i32 = 5;
/** Where the caller writes the next bytes, after the rest of the previous ones. */
const INPUT_BYTES: i32 = 65536;
const INPUT: i32 = memory.data(INPUT_BYTES + 2 * BLOCK + AHEAD, 16) as i32;

/** All ones if the block starts inside a string. */
let inString: u64 = 0;
/** Bit 0: the first byte of the next block is escaped. */
let escapedNext: u64 = 0;
/** The bytes of the next block that must be hexadecimal digits. */
let hexNext: u64 = 0;
/** How many bytes are kept until their block and the bytes after it are complete. */
let waiting: i32 = 0;
let isFaulty: bool = false;

/** Where to write the next bytes: at most {@link inputBytes}. */
export function inputAt(): i32 {
  return INPUT + waiting;
}

export function inputBytes(): i32 {
  return INPUT_BYTES;
}

/** Starts a new text. `maxDepth` limits levels of nesting, `maxKeys` the member names of all objects together. */
export function begin(maxDepth: i32, maxKeys: i32): void {
  beginLimits(maxDepth, maxKeys);
  beginTokens();
  beginNesting();
  escapedNext = hexNext = 0;
  beginScalars();
  inString = 0;
  waiting = 0;
  isFaulty = false;
}

/**
 * Reads the bytes that were written at {@link inputAt}. False if the text so far cannot be the beginning of JSON, or
 * exceeds a limit.
 */
export function push(length: i32): bool {
  if (isFaulty) return false;
  const end = INPUT + waiting + length;
  let at = INPUT;
  for (; at + BLOCK + AHEAD <= end; at += BLOCK) {
    if (!isBlockGood(at)) {
      isFaulty = true;
      return false;
    }
    passBlock(BLOCK);
  }
  waiting = end - at;
  memory.copy(INPUT, at, waiting);
  return true;
}

/** Whether the whole text is one JSON value. */
export function end(): bool {
  return endBeginning() && inString === 0 && !isNested() && mayEnd();
}

/** Whether the text is the beginning of one, if it ends before or after a token, or within a string. */
export function endBeginning(): bool {
  // The end of the text ends a number, as white space does.
  const length = (waiting < BLOCK ? BLOCK : 2 * BLOCK) + AHEAD - waiting;
  memory.fill(INPUT + waiting, 0x20, length);
  return push(length);
}

// @ts-ignore: decorator
@inline
function isBlockGood(at: i32): bool {
  const a = v128.load(at);
  const b = v128.load(at, 16);
  const c = v128.load(at, 32);
  const d = v128.load(at, 48);

  // Keep counting after an error: a limit may have been exceeded before it.
  let isGood: bool = true;
  let quotes = equalTo(a, b, c, d, 0x22);
  let strings: u64;
  let spaces: u64;
  if (((isAnySpecial(a, b, c, d) as u64) | escapedNext | hexNext) !== 0) {
    const backslashes = equalTo(a, b, c, d, 0x5c);
    const escaped = escapedOf(backslashes);
    isGood = areEscapesGood(at, escaped);
    quotes &= ~escaped;
    strings = insideOf(quotes) ^ inString;
    spaces = whitespace(a, b, c, d);
    isGood = isGood && (controls(a, b, c, d) & (strings | ~spaces)) === 0;
  } else {
    // The whole block is inside a string.
    if ((quotes | ~inString) === 0) return true;
    strings = insideOf(quotes) ^ inString;
    spaces = equalTo(a, b, c, d, 0x20);
  }
  inString = ((strings as i64) >> 63) as u64;

  // Single bits distinguish the operators in fewer instructions than comparisons: all brackets have bit 6, and `[`, `{`
  // and `:` have bit 1.
  const outside = ~(strings | quotes);
  spaces &= outside;
  const operators = operatorsOf(a, b, c, d) & outside;
  const scalars = outside ^ (operators | spaces);
  const with6 = withBit(a, b, c, d, 6);
  const with1 = withBit(a, b, c, d, 1);
  const brackets = operators & with6;
  const dividers = operators ^ brackets;
  const opening = brackets & with1;
  const closing = brackets ^ opening;
  const colons = dividers & with1;
  const commas = dividers ^ colons;

  const was = wasInScalar();
  if ((scalars | was) !== 0) {
    const digits = digitsOf(a, b, c, d);
    const zeros = equalTo(a, b, c, d, 0x30);
    const points = equalTo(a, b, c, d, 0x2e);
    isGood = isGood && areScalarsGood(at, scalars, with6, digits, zeros, points);
  }
  const afterScalars = ((scalars << 1) | was) & ~scalars;

  const objects = objectsOf(at, opening, closing, commas);
  isGood = isGood && !isMisnested();
  const beginnings = (quotes & strings) | opening | scalars;
  const areTokens =
    spaces === 0
      ? areTokensGood(strings, quotes, 0, opening, closing, commas, colons, objects, beginnings, afterScalars)
      : areTokensGood(strings, quotes, spaces, opening, closing, commas, colons, objects, beginnings, afterScalars);
  return isWithinLimits(opening, closing, nameStarts) && areTokens && isGood;
}

/** The escaped bytes: each byte after a backslash that is not escaped itself. */
function escapedOf(backslashes: u64): u64 {
  let escaped = escapedNext;
  escapedNext = 0;
  for (let rest = backslashes; rest !== 0; rest &= rest - 1) {
    const bit = rest & (0 - rest);
    if ((escaped & bit) !== 0) continue;
    escaped |= bit << 1;
    escapedNext = bit >> 63;
  }
  return escaped;
}

/** RFC 8259 section 7: what may follow a backslash, and four hexadecimal digits after `\u`. */
function areEscapesGood(at: i32, escaped: u64): bool {
  let digits = hexNext;
  hexNext = 0;
  for (let rest = escaped; rest !== 0; rest &= rest - 1) {
    const index = ctz(rest);
    const byte = load<u8>(at + (index as i32));
    if (byte === 0x75) {
      digits |= (0x1e as u64) << index;
      if (index > 59) hexNext = (0x1e as u64) >> (64 - index);
    } else if (!isSimpleEscape(byte)) {
      return false;
    }
  }
  for (; digits !== 0; digits &= digits - 1) {
    if (!isHexDigit(load<u8>(at + (ctz(digits) as i32)))) return false;
  }
  return true;
}

/** `"`, `\`, `/`, b, f, n, r, t. */
function isSimpleEscape(byte: u8): bool {
  return (
    byte === 0x22 || byte === 0x5c || byte === 0x2f || byte === 0x62 || byte === 0x66 || byte === 0x6e || byte === 0x72 || byte === 0x74
  );
}

function isHexDigit(byte: u8): bool {
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}

