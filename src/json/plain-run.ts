/**
 * Index of the first byte in `from` … `end` that is a quote, a backslash or a control character: where a plain run of
 * a JSON string stops. `end` when there is none.
 *
 * `end` is an argument since reading `byteLength` costs more than a short run.
 */
export function plainRunEnd(text: DataView, from: number, end: number): number {
  let at = from;
  for (; at + 8 <= end; at += 8) {
    const low = hitsIn(text.getInt32(at, true));
    if (low !== 0) return at + firstHit(low);
    const high = hitsIn(text.getInt32(at + 4, true));
    if (high !== 0) return at + 4 + firstHit(high);
  }
  for (; at < end; at++) {
    const byte = text.getUint8(at);
    if (byte < 0x20 || byte === 0x22 || byte === 0x5c) return at;
  }
  return at;
}

/** Index of the first byte in `from` … `end` that is not a space; `end` when there is none. */
export function spacesEnd(text: DataView, from: number, end: number): number {
  let at = from;
  while (at + 4 <= end && text.getInt32(at, true) === 0x20202020) at += 4;
  while (at < end && text.getUint8(at) === 0x20) at++;
  return at;
}

/** A view of the same bytes. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * The high bit of each of four bytes that ends a run; 0 when none does.
 *
 * `(word ^ 0x02…) - 0x21…` borrows into the high bit of bytes below 0x20 and of the quote (0x22 becomes 0x20, 0x20
 * becomes 0x22), `(word ^ 0x5c…) - 0x01…` into that of the backslash; `& ~word` takes out bytes from 0x80. A borrow
 * spoils only bytes above the one it comes from, so the lowest hit is right
 * (https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord).
 */
function hitsIn(word: number): number {
  return (((word ^ 0x02020202) - 0x21212121) | ((word ^ 0x5c5c5c5c) - 0x01010101)) & ~word & 0x80808080;
}

function firstHit(hits: number): number {
  return (31 - Math.clz32(hits & -hits)) >> 3;
}
