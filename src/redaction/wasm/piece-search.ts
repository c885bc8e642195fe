/*
 * Where some bytes have to be read closely. AssemblyScript: `npm run wasm` makes ../piece-search-wasm.ts of it.
 *
 * ../piece-filter.ts tells what for, and makes the table.
 */

/** Bytes that are compared at once. */
const GRAM: i32 = 4;
/** Where the caller puts bytes; some more are read behind the last. */
const INPUT_BYTES: i32 = 65536;
const INPUT: i32 = memory.data(INPUT_BYTES + 16, 16) as i32;
const TABLE_BYTES: i32 = 65536;
const TABLE: i32 = memory.data(TABLE_BYTES, 16) as i32;
/** For each byte, whether it may be in a piece: 1 or 0. */
const LETTERS: i32 = memory.data(256, 16) as i32;

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

/**
 * The first place from `from` on that begins an escape of what may be in a piece, or breaks a line of base64, or that is a
 * multiple of `step` with a piece that the table may have; -1 when there is none.
 *
 * @param step 1, 2, 4, 8 or 16.
 * @param bits of the table; a power of two.
 */
export function next(from: i32, length: i32, step: i32, bits: u32): i32 {
  for (let block = from & ~15; block < length; block += 16) {
    const event = eventIn(block, from, length);
    const last = min(min(event, block + 16), length - GRAM + 1);
    for (let at = block; at < last; at += step) if (at >= from && mayBeKept(load<u32>(INPUT + at), bits)) return at;
    if (event < length) return event;
  }
  return -1;
}

function mayBeKept(gram: u32, bits: u32): bool {
  const hash = ((gram * 0x9e3779b1) >>> 12) & (bits - 1);
  return ((load<u8>(TABLE + (hash >>> 3)) >>> (hash & 7)) & 1) !== 0;
}

/** The first in 16 bytes; `length` when there is none. */
function eventIn(block: i32, from: i32, length: i32): i32 {
  const bytes = v128.load(INPUT + block);
  const escapes = v128.or(i8x16.eq(bytes, i8x16.splat(0x5c)), i8x16.eq(bytes, i8x16.splat(0x25)));
  const breaks = v128.or(i8x16.eq(bytes, i8x16.splat(0x0a)), i8x16.eq(bytes, i8x16.splat(0x0d)));
  let found = i8x16.bitmask(v128.or(escapes, breaks));
  for (; found !== 0; found &= found - 1) {
    const at = block + ctz(found);
    if (at >= length) return length;
    if (at >= from && isEvent(at, length)) return at;
  }
  return length;
}

/** Whether what begins there may spell a letter of a piece, or break a line of base64. Whatever is cut may. */
function isEvent(at: i32, length: i32): bool {
  const byte = load<u8>(INPUT + at) as i32;
  if (byte !== 0x5c && byte !== 0x25) return isBreak(at, at + 1, length);
  const second = at + 1 < length ? (load<u8>(INPUT + at + 1) as i32) : 0x5c;
  const isLong = byte === 0x5c && second === 0x75;
  if (byte === 0x5c && !isLong) return isLetterOrBreak(shortOne(second), at, at + 2, length);
  const end = at + (isLong ? 6 : 3);
  if (end > length) return true;
  let value = 0;
  for (let digitAt = at + (isLong ? 2 : 1); digitAt < end; digitAt++) {
    const digit = load<u8>(INPUT + digitAt) as i32;
    if (digit === 0x5c || digit === 0x25) return true;
    // What is no escape stands as it is.
    if (!isDigit(digit)) return load<u8>(LETTERS + byte) !== 0;
    value = (value << 4) | (digit < 0x3a ? digit - 0x30 : (digit | 0x20) - 0x57);
  }
  return isLetterOrBreak(value, at, end, length);
}

/** The character of a short escape; a backslash for what is none, or is not known. */
function shortOne(letter: i32): i32 {
  if (letter === 0x6e) return 0x0a;
  if (letter === 0x72) return 0x0d;
  if (letter === 0x74 || letter === 0x62 || letter === 0x66) return 0x09;
  return letter === 0x22 || letter === 0x2f ? letter : 0x5c;
}

/** Of more than a byte, only what the first byte of UTF-8 may be counts. */
function isLetterOrBreak(value: i32, at: i32, end: i32, length: i32): bool {
  if (value === 0x0a || value === 0x0d) return isBreak(at, end, length);
  return value === 0x5c || value === 0x25 || load<u8>(LETTERS + min(value, 0xff)) !== 0;
}

/** Between two letters of base64, but for the white space that the next line may begin with. */
function isBreak(at: i32, end: i32, length: i32): bool {
  if (at > 0 && !isOfBase64(load<u8>(INPUT + at - 1))) return false;
  while (end < length && (load<u8>(INPUT + end) === 0x20 || load<u8>(INPUT + end) === 0x09)) end++;
  if (end >= length) return true;
  const next = load<u8>(INPUT + end) as i32;
  return next === 0x0a || next === 0x0d || next === 0x5c || next === 0x25 || isOfBase64(next);
}

function isDigit(byte: i32): bool {
  return (byte >= 0x30 && byte < 0x3a) || ((byte | 0x20) >= 0x61 && (byte | 0x20) < 0x67);
}

/** A letter, a digit, or one of the others of both alphabets (RFC 4648 sections 4 and 5). */
function isOfBase64(byte: u32): bool {
  return (byte | 0x20) - 0x61 < 26 || byte - 0x30 < 10 || byte === 0x2b || byte === 0x2d || byte === 0x2f || byte === 0x5f;
}
