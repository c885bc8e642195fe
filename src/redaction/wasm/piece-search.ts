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

export function inputAt(): i32 {
  return INPUT;
}

export function inputBytes(): i32 {
  return INPUT_BYTES;
}

export function tableAt(): i32 {
  return TABLE;
}

export function tableBytes(): i32 {
  return TABLE_BYTES;
}

/**
 * The first place from `from` on that begins an escape or breaks a line of base64, or that is a multiple of `step` with a
 * piece that the table may have; -1 when there is none.
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
    if (at >= from && (load<u8>(INPUT + at) > 0x0d || at === 0 || isOfBase64(load<u8>(INPUT + at - 1)))) return at;
  }
  return length;
}

/** A letter, a digit, or one of the others of both alphabets (RFC 4648 sections 4 and 5). */
function isOfBase64(byte: u32): bool {
  return (byte | 0x20) - 0x61 < 26 || byte - 0x30 < 10 || byte === 0x2b || byte === 0x2d || byte === 0x2f || byte === 0x5f;
}
