/*
 * The search of ../piece-filter.ts, which explains it. AssemblyScript: `npm run wasm` compiles it to
 * ../piece-search-wasm.ts.
 */

import { INPUT, INPUT_BYTES, isNoneAtOnce, isPlainEnd, LETTERS, LF, NONE, UNCLEAR, undoneAt, undoneEnd } from "./undo";

/** Bytes of a piece. */
const GRAM: i32 = 4;
/** Bytes that `skim()` handles at once. */
const CHUNK: i32 = 64;
/** The letters of the input, with escapes undone. */
const SPELLED: i32 = memory.data(INPUT_BYTES + 48, 16) as i32;
/** For each 16 bytes of input: the number of letters before them, and the first byte not among those. */
const MARKS: i32 = memory.data(INPUT_BYTES / 2, 16) as i32;
const TABLE_BYTES: i32 = 65536;
const TABLE: i32 = memory.data(TABLE_BYTES, 16) as i32;
/** After so many blocks of 16 bytes without an escape or line break, `isInLetters()` stops. */
const PLAIN_BLOCKS: i32 = 3;
/** Each piece sets two bits of the table. */
const FIRST_FACTOR: u32 = 0x9e3779b1;
const SECOND_FACTOR: u32 = 0x85ebca6b;

let readFromPlace: i32 = 0;
let readToPlace: i32 = 0;

export function inputAt(): i32 {
  return INPUT;
}

export function inputBytes(): i32 {
  return INPUT_BYTES;
}

export function lettersAt(): i32 {
  return LETTERS;
}

export function tableBytes(): i32 {
  return TABLE_BYTES;
}

/** Empties the table. */
export function clear(tableBytes: i32): void {
  memory.fill(TABLE, 0, tableBytes);
}

/** Adds the pieces that are the first `length` bytes of the input to the table. */
export function add(length: i32, tableBytes: i32): void {
  const mask = tableBytes - 4;
  for (let at = INPUT; at < INPUT + length; at += GRAM) {
    const piece = load<u32>(at);
    addBit(piece * FIRST_FACTOR, mask);
    addBit(piece * SECOND_FACTOR, mask);
  }
}

/** Set by `next()`: where to begin reading closely. */
export function readFrom(): i32 {
  return readFromPlace;
}

/** Set by `next()`: how far to read closely at least. */
export function readTo(): i32 {
  return readToPlace;
}

/**
 * Searches from `from` on for the next bytes to read closely. False if there are none; then a text may still begin near
 * the end.
 *
 * @param step 1, 2, 4, 8 or 16.
 * @param reach how many letters before a piece a text may begin.
 * @param tableBytes a power of two.
 * @param isStrict whether every escape is to be read closely.
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
 * Finds the first `step`th byte with a piece, or the first escape or line break close to another one: where these are
 * far apart, a text contains a run of literal bytes that is long enough for one of its first pieces to be at a `step`th
 * byte. Returns the index, or `length`, and sets `readFromPlace` to where to begin undoing escapes.
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

/** Undoes escapes and line breaks, and looks up each `step`th letter, until there was nothing to undo for a while. */
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

/** Sets `readFromPlace` to where a letter was read, or to a little before. */
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

/** The bit of a hash is the lowest of the result. */
function bitFor(hash: u32, mask: u32): u32 {
  return load<u32>(TABLE + ((hash >>> 11) & mask)) >>> (hash >>> 27);
}

function addBit(hash: u32, mask: u32): void {
  const at = TABLE + ((hash >>> 11) & mask);
  store<u32>(at, load<u32>(at) | (1 << (hash >>> 27)));
}

function pieceIn(chunk: i32, length: i32, step: i32, mask: u32): i32 {
  for (let at = chunk; at < chunk + CHUNK && at + GRAM <= length; at += step) {
    if (mayBeKept(load<u32>(INPUT + at), mask)) return at;
  }
  return length;
}

function mayBeKept(gram: u32, mask: u32): bool {
  return (bitFor(gram * FIRST_FACTOR, mask) & bitFor(gram * SECOND_FACTOR, mask) & 1) !== 0;
}

/** The bytes that may begin an escape or end a line: each of these differs in its low four bits. */
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
