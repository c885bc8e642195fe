/*
 * Where some bytes have to be read closely. AssemblyScript: `npm run wasm` makes ../piece-search-wasm.ts of it.
 *
 * ../piece-filter.ts tells what for, and makes the table.
 */

/** Bytes that are compared at once. */
const GRAM: i32 = 4;
/** Where the caller puts bytes; some more are read in front of the first and behind the last. */
const INPUT_BYTES: i32 = 65536;
const INPUT: i32 = (memory.data(INPUT_BYTES + 48, 16) as i32) + 16;
/** The letters that they spell. */
const SPELLED: i32 = memory.data(INPUT_BYTES + 48, 16) as i32;
/** For each 16 bytes: how many letters come before, and the first byte that is not read with those. */
const MARKS: i32 = memory.data(INPUT_BYTES / 2, 16) as i32;
const TABLE_BYTES: i32 = 65536;
const TABLE: i32 = memory.data(TABLE_BYTES, 16) as i32;
/** For each byte, whether it may be in a piece: 1 or 0. */
const LETTERS: i32 = memory.data(256, 16) as i32;

const LF: i32 = 0x0a;
const CR: i32 = 0x0d;
const QUOTE: i32 = 0x22;
const PERCENT: i32 = 0x25;
const BACKSLASH: i32 = 0x5c;
/** Is in no escape. */
const NEVER: i32 = 0xff;

/** What an escape stands for that stands for no character: it is none, it is part of another one, or its end is cut off. */
const NONE: i32 = -1;
const NESTED: i32 = -2;
const CUT: i32 = -3;

let readFromPlace: i32 = 0;
let readToPlace: i32 = 0;
let escapeEnd: i32 = 0;

export function inputAt(): i32 {
  return INPUT;
}

export function inputBytes(): i32 {
  return INPUT_BYTES;
}

export function tableAt(): i32 {
  return TABLE;
}

export function lettersAt(): i32 {
  return LETTERS;
}

export function tableBytes(): i32 {
  return TABLE_BYTES;
}

/** Where to begin to read, after `next()`. */
export function readFrom(): i32 {
  return readFromPlace;
}

/** How far to read at least. */
export function readTo(): i32 {
  return readToPlace;
}

/**
 * Undoes escapes and ends of lines from `from` on, and looks for a piece that the table may have at each `step`th letter.
 * Whether there is one, or an escape to read closely; when there is not, a text may still begin in the end.
 *
 * An escape of what is no letter of a piece stands as it is: no text goes on over it.
 *
 * @param step 1, 2, 4, 8 or 16.
 * @param reach how many letters in front of a piece a text may begin.
 * @param bits of the table; a power of two.
 * @param isStrict whether each escape is to be read closely.
 */
export function next(from: i32, length: i32, step: i32, reach: i32, bits: u32, isStrict: bool): bool {
  const quote = isStrict || load<u8>(LETTERS + QUOTE) !== 0 ? NEVER : QUOTE;
  readToPlace = length;
  let at = from;
  let count = 0;
  let due = 0;
  let isNested = false;
  let block = from & ~15;
  for (; block < length; block += 16) {
    let end = min(block + 16, length);
    at = max(at, block);
    store<i32>(MARKS + (block >>> 1), count);
    store<i32>(MARKS + (block >>> 1) + 4, at);
    if (at >= end) continue;
    let found = eventsIn(block, quote);
    if (found !== 0) {
      found &= -1 << (at - block);
      for (let seen = at; found !== 0; found &= found - 1) {
        const event = block + ctz(found);
        if (event < seen) continue;
        if (event >= end) break;
        const value = valueAt(event, length);
        seen = escapeEnd;
        if (value === CUT || value === NESTED || (isStrict && isLead(load<u8>(INPUT + event)))) {
          isNested = value !== CUT || isStrict;
          readToPlace = isNested ? escapeEnd : length;
          end = length = event;
          break;
        }
        const isEnd = value === LF || value === CR;
        if (isEnd ? event === 0 || !isOfBase64(load<u8>(INPUT + event - 1)) : !isLetter(value)) continue;
        v128.store(SPELLED + count, v128.load(INPUT + at));
        count += event - at;
        if (!isEnd) store<u8>(SPELLED + count++, value);
        at = isEnd ? behindSpace(seen, length) : seen;
        seen = at;
      }
    }
    if (at < end) {
      v128.store(SPELLED + count, v128.load(INPUT + at));
      count += end - at;
      at = end;
    }
    for (; due + GRAM <= count; due += step) {
      if (!mayBeKept(load<u32>(SPELLED + due), bits)) continue;
      readToPlace = at;
      return begunAt(due - reach, from, block);
    }
  }
  begunAt(min(due, count) - reach, from, block - 16);
  return isNested;
}

/** Finds where a letter is read from, or some before it. */
function begunAt(letter: i32, from: i32, last: i32): bool {
  let block = last;
  while (block > (from & ~15) && load<i32>(MARKS + (block >>> 1)) > letter) block -= 16;
  readFromPlace = load<i32>(MARKS + (block >>> 1) + 4);
  return true;
}

function mayBeKept(gram: u32, bits: u32): bool {
  return isSet(gram * 0x9e3779b1, bits) && isSet(gram * 0x85ebca6b, bits) && isSet(gram * 0xc2b2ae35, bits);
}

function isSet(product: u32, bits: u32): bool {
  const hash = (product >>> 12) & (bits - 1);
  return ((load<u8>(TABLE + (hash >>> 3)) >>> (hash & 7)) & 1) !== 0;
}

/**
 * A bit for each of 16 bytes that may begin an escape or end a line of base64. Most are told at once: a quotation mark
 * that is escaped, and the end of a line, escaped or not, behind what is not of base64.
 */
function eventsIn(block: i32, quote: i32): i32 {
  const bytes = v128.load(INPUT + block);
  const backslashes = i8x16.eq(bytes, i8x16.splat(BACKSLASH as i8));
  const percents = i8x16.eq(bytes, i8x16.splat(PERCENT as i8));
  const ends = v128.or(i8x16.eq(bytes, i8x16.splat(LF as i8)), i8x16.eq(bytes, i8x16.splat(CR as i8)));
  const all = v128.or(v128.or(backslashes, percents), ends);
  if (!v128.any_true(all)) return 0;
  const second = v128.load(INPUT + block + 1);
  const quotes = v128.and(backslashes, i8x16.eq(second, i8x16.splat(quote as i8)));
  const letters = v128.or(i8x16.eq(second, i8x16.splat(0x6e)), i8x16.eq(second, i8x16.splat(0x72)));
  const anyEnds = v128.or(ends, v128.and(backslashes, letters));
  const noEnds = v128.andnot(anyEnds, areOfBase64(v128.load(INPUT + block - 1)));
  return i8x16.bitmask(v128.andnot(all, v128.or(quotes, noEnds)));
}

/** Not zero for each byte of base64, by a bit for each kind of upper half that goes with a lower half. */
function areOfBase64(bytes: v128): v128 {
  const lower = v128.and(bytes, i8x16.splat(0x0f));
  const upper = v128.and(i16x8.shr_u(bytes, 4), i8x16.splat(0x0f));
  const kinds = v128.and(
    v128.swizzle(i8x16(10, 14, 14, 14, 14, 14, 14, 14, 14, 14, 12, 5, 4, 5, 4, 13), lower),
    v128.swizzle(i8x16(0, 0, 1, 2, 4, 8, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0), upper),
  );
  return i8x16.ne(kinds, i8x16.splat(0));
}

/** A letter, a digit, or one of the others of both alphabets (RFC 4648 sections 4 and 5). */
function isOfBase64(byte: u32): bool {
  return (byte | 0x20) - 0x61 < 26 || byte - 0x30 < 10 || byte === 0x2b || byte === 0x2d || byte === 0x2f || byte === 0x5f;
}

function isLead(byte: i32): bool {
  return byte === BACKSLASH || byte === PERCENT;
}

/** Of more than a byte, only what the first byte of UTF-8 may be counts. */
function isLetter(value: i32): bool {
  return value >= 0 && load<u8>(LETTERS + min(value, 0xff)) !== 0;
}

/** Behind the end of a line, and the white space that the next one may begin with, escaped or not. */
function behindSpace(at: i32, length: i32): i32 {
  while (at < length && isSpace(valueAt(at, length))) at = escapeEnd;
  return at;
}

function isSpace(value: i32): bool {
  return value === 0x20 || value === 0x09 || value === LF || value === CR;
}

/** What is read at a place, which goes to `escapeEnd`. */
function valueAt(at: i32, length: i32): i32 {
  const byte = load<u8>(INPUT + at) as i32;
  escapeEnd = at + 1;
  if (byte === BACKSLASH) return valueInJson(length);
  return byte === PERCENT ? valueInUrl(length) : byte;
}

/** Each escape may be escaped again: what several backslashes stand for depends on what is behind them, or on nothing. */
function valueInJson(length: i32): i32 {
  while (escapeEnd < length && load<u8>(INPUT + escapeEnd) === BACKSLASH) escapeEnd++;
  if (escapeEnd >= length) return CUT;
  const letter = load<u8>(INPUT + escapeEnd++) as i32;
  if (letter === 0x75) return numberOf(4, length);
  if (letter === PERCENT) return NESTED;
  if (letter === 0x6e) return LF;
  if (letter === 0x72) return CR;
  if (letter === 0x74) return 0x09;
  if (letter === QUOTE || letter === 0x2f) return letter;
  if (letter === LF || letter === CR) escapeEnd--;
  return NONE;
}

/** A percent sign may be escaped again, too. */
function valueInUrl(length: i32): i32 {
  let value = PERCENT;
  while (value === PERCENT) value = numberOf(2, length);
  return value === BACKSLASH ? NESTED : value;
}

/** Of hexadecimal digits. A digit that is escaped is read closely. */
function numberOf(digits: i32, length: i32): i32 {
  let value = 0;
  for (let count = 0; count < digits; count++) {
    if (escapeEnd >= length) return CUT;
    const digit = load<u8>(INPUT + escapeEnd) as i32;
    if (isLead(digit)) return NESTED;
    const isDigit = (digit >= 0x30 && digit < 0x3a) || ((digit | 0x20) >= 0x61 && (digit | 0x20) < 0x67);
    if (!isDigit) return NONE;
    value = (value << 4) | (digit < 0x3a ? digit - 0x30 : (digit | 0x20) - 0x57);
    escapeEnd++;
  }
  return digits === 4 && isLead(value) ? NESTED : value;
}
