/*
 * Whether one of some pieces stands at one of every so many places. AssemblyScript: `npm run wasm` makes
 * ../anchor-search-wasm.ts of it.
 *
 * ../anchor-filter.ts tells what for, and makes the table. Each answer comes with a table of its own, so JavaScript's
 * compiler cannot take one for granted: it needs three times as long.
 */

/** Bytes that are compared at once. */
const GRAM: i32 = 4;
/** Where the caller puts bytes. */
const INPUT_BYTES: i32 = 65536;
const INPUT: i32 = memory.data(INPUT_BYTES, 16) as i32;
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
 * Looks at every `step`th place of so many bytes.
 *
 * @param bitBytes bytes of bits that the table begins with; a power of two.
 * @param places words of pieces that come behind; a power of two.
 */
export function isAnyKept(length: i32, step: i32, bitBytes: u32, places: u32): bool {
  const last = INPUT + length - GRAM;
  for (let at = INPUT; at <= last; at += step) {
    const gram = load<u32>(at);
    const hash = (gram * 0x9e3779b1) >>> 12;
    const bits = load<u8>(TABLE + ((hash >>> 3) & (bitBytes - 1))) as u32;
    if (((bits >>> (hash & 7)) & 1) !== 0 && isKept(gram, hash, TABLE + bitBytes, places - 1)) return true;
  }
  return false;
}

/** Four bytes of zero are no piece: they mark an empty place. */
function isKept(gram: u32, hash: u32, pieces: i32, mask: u32): bool {
  let place = hash & mask;
  for (let kept = load<u32>(pieces + (place << 2)); kept !== 0; kept = load<u32>(pieces + (place << 2))) {
    if (kept === gram) return true;
    place = (place + 1) & mask;
  }
  return false;
}
