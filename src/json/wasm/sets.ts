// AssemblyScript: see json-blocks.ts.

// Sixty-four bytes, in four vectors, become sets of positions: one bit per byte, lowest first.

/** Each position with an odd number of the set's members at or before it: from each opening quote to its closing one. */
export function insideOf(quotes: u64): u64 {
  let inside = quotes;
  for (let distance: u64 = 1; distance < 64; distance <<= 1) inside ^= inside << distance;
  return inside;
}

/** Upper brackets become lower ones: `[` and `{` differ in this bit only, and so do `]` and `}`. */
// @ts-ignore: decorator
@inline
export function folded(bytes: v128): v128 {
  return v128.or(bytes, i8x16.splat(0x20));
}

// @ts-ignore: decorator
@inline
export function equalTo(a: v128, b: v128, c: v128, d: v128, byte: i8): u64 {
  const all = i8x16.splat(byte);
  return setOf(i8x16.eq(a, all), i8x16.eq(b, all), i8x16.eq(c, all), i8x16.eq(d, all));
}

// @ts-ignore: decorator
@inline
export function controls(a: v128, b: v128, c: v128, d: v128): u64 {
  const space = i8x16.splat(0x20);
  return setOf(i8x16.lt_u(a, space), i8x16.lt_u(b, space), i8x16.lt_u(c, space), i8x16.lt_u(d, space));
}

// @ts-ignore: decorator
@inline
export function digits(a: v128, b: v128, c: v128, d: v128): u64 {
  return setOf(areDigits(a), areDigits(b), areDigits(c), areDigits(d));
}

// @ts-ignore: decorator
@inline
function areDigits(bytes: v128): v128 {
  return i8x16.lt_u(i8x16.sub(bytes, i8x16.splat(0x30)), i8x16.splat(10));
}

// @ts-ignore: decorator
@inline
export function whitespace(a: v128, b: v128, c: v128, d: v128): u64 {
  return setOf(areSpaces(a), areSpaces(b), areSpaces(c), areSpaces(d));
}

/** Each white space character stands in the table at the index of its low four bits. */
// @ts-ignore: decorator
@inline
function areSpaces(bytes: v128): v128 {
  const table = i8x16(0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0a, 0, 0, 0x0d, 0, 0);
  return i8x16.eq(i8x16.swizzle(table, v128.and(bytes, i8x16.splat(0x0f))), bytes);
}

// @ts-ignore: decorator
@inline
function setOf(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    (i8x16.bitmask(a) as u64) |
    ((i8x16.bitmask(b) as u64) << 16) |
    ((i8x16.bitmask(c) as u64) << 32) |
    ((i8x16.bitmask(d) as u64) << 48)
  );
}
