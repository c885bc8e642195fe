// AssemblyScript: see json-blocks.ts.

// Turns 64 bytes in four vectors into bit sets of positions: one bit per byte, lowest first.

/** The bytes below 0x80, in order: filling a vector from memory takes one instruction, with a constant three. */
const BYTES: i32 = memory.data(128) as i32;
for (let byte = 0; byte < 128; byte++) store<u8>(BYTES + byte, byte as u8);

// Each character is at the index of its low four bits, with square brackets as curly ones.
const WHITESPACE: i32 = memory.data<u8>([0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0a, 0, 0, 0x0d, 0, 0], 16) as i32;
const OPERATORS: i32 = memory.data<u8>([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3a, 0x7b, 0x2c, 0x7d, 0, 0], 16) as i32;

/** The positions with an odd number of quotes at or before them: from each opening quote to before its closing one. */
// @ts-ignore: decorator
@inline
export function insideOf(quotes: u64): u64 {
  let inside = quotes ^ (quotes << 1);
  inside ^= inside << 2;
  inside ^= inside << 4;
  inside ^= inside << 8;
  inside ^= inside << 16;
  return inside ^ (inside << 32);
}

// @ts-ignore: decorator
@inline
export function equalTo(a: v128, b: v128, c: v128, d: v128, byte: u8): u64 {
  const all = filledWith(byte);
  return setOf(i8x16.eq(a, all), i8x16.eq(b, all), i8x16.eq(c, all), i8x16.eq(d, all));
}

/** Whether there is a backslash or a control character: most blocks have none, and this is faster than both sets. */
// @ts-ignore: decorator
@inline
export function isAnySpecial(a: v128, b: v128, c: v128, d: v128): bool {
  const all = filledWith(0x5c);
  const backslashes = v128.or(v128.or(i8x16.eq(a, all), i8x16.eq(b, all)), v128.or(i8x16.eq(c, all), i8x16.eq(d, all)));
  const least = i8x16.min_u(i8x16.min_u(a, b), i8x16.min_u(c, d));
  return v128.any_true(v128.or(backslashes, areControls(least)));
}

// @ts-ignore: decorator
@inline
export function controls(a: v128, b: v128, c: v128, d: v128): u64 {
  return setOf(areControls(a), areControls(b), areControls(c), areControls(d));
}

/** By the unsigned minimum: processors have no unsigned comparison. */
// @ts-ignore: decorator
@inline
function areControls(bytes: v128): v128 {
  return i8x16.eq(i8x16.min_u(bytes, filledWith(0x1f)), bytes);
}

// @ts-ignore: decorator
@inline
export function digitsOf(a: v128, b: v128, c: v128, d: v128): u64 {
  return setOf(areDigits(a), areDigits(b), areDigits(c), areDigits(d));
}

/** Moves `9` to the largest signed number, so that one comparison is enough. */
// @ts-ignore: decorator
@inline
function areDigits(bytes: v128): v128 {
  return i8x16.gt_s(i8x16.add(bytes, filledWith(0x46)), filledWith(0x75));
}

// @ts-ignore: decorator
@inline
export function whitespace(a: v128, b: v128, c: v128, d: v128): u64 {
  return setOf(areSpaces(a), areSpaces(b), areSpaces(c), areSpaces(d));
}

// @ts-ignore: decorator
@inline
function areSpaces(bytes: v128): v128 {
  return i8x16.eq(i8x16.swizzle(v128.load(WHITESPACE), v128.and(bytes, filledWith(0x0f))), bytes);
}

/** Brackets, commas and colons, and also the control characters 0x0c and 0x1a. */
// @ts-ignore: decorator
@inline
export function operatorsOf(a: v128, b: v128, c: v128, d: v128): u64 {
  return setOf(areOperators(a), areOperators(b), areOperators(c), areOperators(d));
}

// @ts-ignore: decorator
@inline
function areOperators(bytes: v128): v128 {
  return i8x16.eq(i8x16.swizzle(v128.load(OPERATORS), v128.and(bytes, filledWith(0x0f))), folded(bytes));
}

/** Maps `[` to `{`, `]` to `}` and `E` to `e`: they differ in this bit only. */
// @ts-ignore: decorator
@inline
export function folded(bytes: v128): v128 {
  return v128.or(bytes, filledWith(0x20));
}

/** The bytes in which `bit`, 6 or 1, is set: it is shifted to the sign bit. */
// @ts-ignore: decorator
@inline
export function withBit(a: v128, b: v128, c: v128, d: v128, bit: i32): u64 {
  const distance = 7 - bit;
  return setOf(i16x8.shl(a, distance), i16x8.shl(b, distance), i16x8.shl(c, distance), i16x8.shl(d, distance));
}

// @ts-ignore: decorator
@inline
function filledWith(byte: u8): v128 {
  return v128.load8_splat(BYTES + byte);
}

// @ts-ignore: decorator
@inline
function setOf(a: v128, b: v128, c: v128, d: v128): u64 {
  return (
    (i8x16.bitmask(a) as u32 as u64) |
    ((i8x16.bitmask(b) as u32 as u64) << 16) |
    ((i8x16.bitmask(c) as u32 as u64) << 32) |
    ((i8x16.bitmask(d) as u32 as u64) << 48)
  );
}
