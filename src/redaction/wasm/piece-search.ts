/*
 * Where some bytes have to be read closely. AssemblyScript: `npm run wasm` makes ../piece-search-wasm.ts of it.
 *
 * ../piece-filter.ts tells what for, and makes the table.
 */

import { INPUT, INPUT_BYTES, isNoneAtOnce, isPlainEnd, LETTERS, LF, NONE, UNCLEAR, undoneAt, undoneEnd } from "./undo";

/** Bytes that are compared at once. */
const GRAM: i32 = 4;
/** Bytes that are skimmed together. */
const CHUNK: i32 = 64;
/** The letters that they spell. */
const SPELLED: i32 = memory.data(INPUT_BYTES + 48, 16) as i32;
/** For each 16 bytes: how many letters come before, and the first byte that is not read with those. */
const MARKS: i32 = memory.data(INPUT_BYTES / 2, 16) as i32;
const TABLE_BYTES: i32 = 65536;
const TABLE: i32 = memory.data(TABLE_BYTES, 16) as i32;
/** Without an escape or the end of a line in them, behind which no more letters are undone. */
const PLAIN_BLOCKS: i32 = 3;
/** As in ../piece-filter.ts. */
const FIRST_FACTOR: u32 = 0x9e3779b1;

let readFromPlace: i32 = 0;
let readToPlace: i32 = 0;

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
 * Looks for where texts may be, from `from` on. Whether there is a place to read closely; when there is none, a text may
 * still begin in the end.
 *
 * @param step 1, 2, 4, 8 or 16.
 * @param reach how many letters in front of a piece a text may begin.
 * @param tableBytes a power of two.
 * @param isStrict whether each escape is to be read closely.
 */
export function next(from: i32, length: i32, step: i32, reach: i32, tableBytes: i32, isStrict: bool): bool {
  const mask = tableBytes - 4;
  readFromPlace = from;
  do {
    const suspect = skim(readFromPlace, length, step, mask, isStrict);
    if (suspect >= length) break;
    if (isInLetters(readFromPlace, suspect, length, step, reach, mask, isStrict)) return true;
  } while (readToPlace < length);
  readToPlace = length;
  return false;
}

/**
 * Looks at each `step`th byte as it stands, and for escapes and ends of lines that are close to each other: a text with
 * none of them in it, or one, or some far from each other, has a run of bytes in it that stands as it is and is long
 * enough for one of its first pieces to be at a `step`th byte. Gives back the place where there is either, or `length`, and
 * from where on to undo them.
 */
function skim(from: i32, length: i32, step: i32, mask: u32, isStrict: bool): i32 {
  const apart = step + GRAM;
  let last = from;
  let lastEnd = from - apart;
  let seen = from;
  let suspect = length;
  for (let chunk = from; chunk < length && suspect === length; chunk += CHUNK) {
    if (mayHavePieceIn(chunk, step, mask)) suspect = pieceIn(chunk, length, step, mask);
    const first = areEvents(chunk);
    const second = areEvents(chunk + 16);
    const third = areEvents(chunk + 32);
    const fourth = areEvents(chunk + 48);
    if (!v128.any_true(v128.or(v128.or(first, second), v128.or(third, fourth)))) continue;
    for (let found = bitsOf(first, second, third, fourth); found !== 0; found &= found - 1) {
      const event = chunk + (ctz(found) as i32);
      if (event < seen) continue;
      if (event >= suspect) break;
      if (!isStrict && isNoneAtOnce(event, length)) continue;
      const value = isPlainEnd(event) ? LF : undoneAt(event, length, isStrict);
      seen = undoneEnd;
      if (value === NONE) continue;
      if (value < 0 || event - lastEnd < apart) {
        suspect = event;
        break;
      }
      last = event;
      lastEnd = seen;
    }
  }
  readFromPlace = max(from, (suspect - lastEnd < apart ? last : suspect) - apart);
  return suspect;
}

/** Undoes escapes and ends of lines, and looks at each `step`th letter, until none was undone for a while. */
function isInLetters(
  from: i32,
  suspect: i32,
  length: i32,
  step: i32,
  reach: i32,
  mask: u32,
  isStrict: bool,
): bool {
  readToPlace = length;
  let at = from;
  let seen = from;
  let count = 0;
  let due = 0;
  let plain = 0;
  let isUnclear = false;
  let block = from & ~15;
  for (; block < length && plain < PLAIN_BLOCKS; block += 16) {
    let end = min(block + 16, length);
    at = max(at, block);
    store<i32>(MARKS + (block >>> 1), count);
    store<i32>(MARKS + (block >>> 1) + 4, at);
    if (at >= end) continue;
    let found = i8x16.bitmask(areEvents(block)) & (-1 << (at - block));
    plain = found === 0 && at === block && block > suspect ? plain + 1 : 0;
    for (; found !== 0; found &= found - 1) {
      const event = block + ctz(found);
      if (event < seen) continue;
      if (event >= end) break;
      const value = undoneAt(event, length, isStrict);
      seen = undoneEnd;
      if (value === NONE) continue;
      if (value < 0) {
        isUnclear = value === UNCLEAR;
        readToPlace = isUnclear ? seen : length;
        end = length = event;
        break;
      }
      v128.store(SPELLED + count, v128.load(INPUT + at));
      count += event - at;
      if (value !== LF) store<u8>(SPELLED + count++, value);
      at = seen;
    }
    if (at < end) {
      v128.store(SPELLED + count, v128.load(INPUT + at));
      count += end - at;
      at = end;
    }
    for (; due + GRAM <= count; due += step) {
      if (!mayBeKept(load<u32>(SPELLED + due), mask)) continue;
      readToPlace = at;
      return begunAt(due - reach, from, block);
    }
  }
  if (block < length) readToPlace = at;
  begunAt(min(due, count) - reach, from, block - 16);
  return isUnclear;
}

/** Finds where a letter is read from, or some before it. */
function begunAt(letter: i32, from: i32, last: i32): bool {
  let block = last;
  while (block > (from & ~15) && load<i32>(MARKS + (block >>> 1)) > letter) block -= 16;
  readFromPlace = load<i32>(MARKS + (block >>> 1) + 4);
  return true;
}

function mayHavePieceIn(chunk: i32, step: i32, mask: u32): bool {
  let bits: u32 = 0;
  for (let at = chunk; at < chunk + 16; at += step) {
    bits |= bitOf(INPUT + at, mask) | bitOf(INPUT + at + 16, mask) | bitOf(INPUT + at + 32, mask) | bitOf(INPUT + at + 48, mask);
  }
  return (bits & 1) !== 0;
}

function bitOf(at: i32, mask: u32): u32 {
  return bitFor(load<u32>(at) * FIRST_FACTOR, mask);
}

/** The lowest bit counts. */
function bitFor(hash: u32, mask: u32): u32 {
  return load<u32>(TABLE + ((hash >>> 11) & mask)) >>> (hash >>> 27);
}

function pieceIn(chunk: i32, length: i32, step: i32, mask: u32): i32 {
  for (let at = chunk; at < chunk + CHUNK && at + GRAM <= length; at += step) {
    if (mayBeKept(load<u32>(INPUT + at), mask)) return at;
  }
  return length;
}

function mayBeKept(gram: u32, mask: u32): bool {
  return (bitFor(gram * FIRST_FACTOR, mask) & bitFor(gram * 0x85ebca6b, mask) & 1) !== 0;
}

/** Those that may begin an escape or end a line: that are what the only one of these with their lower half is. */
function areEvents(block: i32): v128 {
  const bytes = v128.load(INPUT + block);
  const table = i8x16(-1, -1, -1, -1, -1, 0x25, -1, -1, -1, -1, 0x0a, -1, 0x5c, 0x0d, -1, -1);
  return i8x16.eq(bytes, v128.swizzle(table, v128.and(bytes, i8x16.splat(0x0f))));
}

function bitsOf(first: v128, second: v128, third: v128, fourth: v128): u64 {
  return (
    (i8x16.bitmask(first) as u64) |
    ((i8x16.bitmask(second) as u64) << 16) |
    ((i8x16.bitmask(third) as u64) << 32) |
    ((i8x16.bitmask(fourth) as u64) << 48)
  );
}
