/*
 * Whether bytes are JSON (RFC 8259), sixty-four at a time. The files here are AssemblyScript: `npm run wasm` makes
 * ../json-blocks-wasm.ts of them.
 *
 * A block becomes sets of positions, one bit per byte, lowest first, and nearly every rule of the grammar one expression
 * over sets: after what a token ends says what the next one may be. Only brackets, literals and escapes are looked at one
 * by one. It needs a quarter of the time of the byte-by-byte machine (about 2.7 GB/s to 0.65).
 *
 * What counts is how many instructions a block takes, and how often the processor guesses wrong where to go on. So the
 * compiler puts all that every block needs into one function, and what few blocks need is told by one question.
 *
 * UTF-8 is the caller's to check.
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
/** So many bytes behind a block must be there when it is judged: what is left of a literal, and one that ends it. */
const AHEAD: i32 = 5;
/** Where the caller puts the next bytes; what is left of the ones before stands in front of them. */
const INPUT_BYTES: i32 = 65536;
const INPUT: i32 = memory.data(INPUT_BYTES + 2 * BLOCK + AHEAD, 16) as i32;

/** All ones inside of a string. */
let inString: u64 = 0;
/** Bit 0: the first byte is escaped. */
let escapedNext: u64 = 0;
/** Bytes that must be hexadecimal digits, from bit 0 on. */
let hexNext: u64 = 0;
/** How many bytes wait for the rest of their block, and those ahead. */
let waiting: i32 = 0;
let isFaulty: bool = false;

/** Where the next bytes go: at most {@link inputBytes}. */
export function inputAt(): i32 {
  return INPUT + waiting;
}

export function inputBytes(): i32 {
  return INPUT_BYTES;
}

/** Forgets what was read. The limits are of levels of nesting, and of names of members in all objects together. */
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
 * Judges the bytes that were put at {@link inputAt}. False when the text so far cannot be the beginning of JSON, or passes
 * a limit.
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

/** Whether all the bytes are one JSON value. */
export function end(): bool {
  return endBeginning() && inString === 0 && !isNested() && mayEnd();
}

/** Whether they could be the beginning of one, where they end in front of or behind a token, or within a string. */
export function endBeginning(): bool {
  // The end of the text ends a number as white space does.
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

  // What stands in front of a fault is counted all the same: a limit may be passed before it.
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
    // All of the block is inside of a string.
    if ((quotes | ~inString) === 0) return true;
    strings = insideOf(quotes) ^ inString;
    spaces = equalTo(a, b, c, d, 0x20);
  }
  inString = ((strings as i64) >> 63) as u64;

  // Bits tell the operators from one another, in fewer instructions than comparisons: all brackets have bit 6, and `[`,
  // `{` and `:` have bit 1.
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

/** Which bytes are escaped: each after a backslash that is not escaped itself. */
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

