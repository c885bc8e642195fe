// AssemblyScript: see json-blocks.ts.

import { equalTo, folded } from "./sets";

const BLOCK: i32 = 64;

/** Bit 0: the previous block ended within a number or literal. */
let wasScalar: u64 = 0;
/** Bit 0: it ended within the integer digits of a number. */
let inInteger: u64 = 0;
/** From bit 0 on: the rest of a literal that began in the previous block. */
let literalRest: u64 = 0;

// Signs and exponents of numbers, which few blocks have.

/** What the previous block ended with, one bit for each of these. Usually 0: nothing to do. */
let powerBefore: u64 = 0;
const FIRST_MINUS: u64 = 0;
const SIGN: u64 = 1;
const EXPONENT: u64 = 2;
/** The digits of an exponent. */
const POWER: u64 = 3;

/** Set by `arePowersGood()`: the positions after the minus signs that begin numbers. */
let afterMinuses: u64 = 0;

export function beginScalars(): void {
  wasScalar = inInteger = literalRest = 0;
  powerBefore = 0;
}

/** Bit 0: the previous block ended within a number or literal, or at its end. */
// @ts-ignore: decorator
@inline
export function wasInScalar(): u64 {
  return wasScalar;
}

/**
 * Numbers and literals (RFC 8259 sections 3 and 6).
 *
 * @param scalars all their bytes, and all bytes that belong to nothing else.
 * @param letterSet bytes with bit 6. This and the next sets include bytes inside strings.
 */
// @ts-ignore: decorator
@inline
export function areScalarsGood(at: i32, scalars: u64, letterSet: u64, digitSet: u64, zeros: u64, pointSet: u64): bool {
  const starts = scalars & ~((scalars << 1) | wasScalar);
  const letters = scalars & letterSet;
  const digits = scalars & digitSet;
  const points = scalars & pointSet;

  let literals = literalRest;
  literalRest = 0;
  for (let rest = starts & letters; rest !== 0; rest &= rest - 1) {
    const index = ctz(rest) as i32;
    const length = literalLength(at + index);
    if (length === 0) return false;
    const bits = ((1 as u64) << length) - 1;
    literals |= bits << index;
    if (index > 59) literalRest = bits >> (BLOCK - index);
  }

  let integerStarts = starts & digits;
  const exponents = letters & ~literals;
  const signs = scalars & ~(digits | letters | points);
  if ((signs | exponents | powerBefore) !== 0) {
    if (!arePowersGood(at, starts, digits, signs, exponents)) return false;
    integerStarts |= afterMinuses;
  }

  // Only integer digits are checked: others follow a point, sign or exponent, which is checked itself.
  const sum = (integerStarts | inInteger) + digits;
  inInteger = sum < digits ? 1 : 0;
  wasScalar = scalars >> 63;
  const integerEnds = sum & ~digits;
  const beforeDigits = (digits >> 1) | (isDigit(load<u8>(at + BLOCK)) ? 0x8000000000000000 : 0);
  return ((integerStarts & zeros & beforeDigits) | (points & ~(integerEnds & beforeDigits))) === 0;
}

// @ts-ignore: decorator
@inline
function isDigit(byte: u8): bool {
  return byte - 0x30 < 10;
}

/** Length of the literal at `at`; 0 if there is none, or if a letter or digit follows it. */
// @ts-ignore: decorator
@inline
function literalLength(at: i32): i32 {
  const word = load<u32>(at);
  let length = 4;
  if (word !== 0x65757274 && word !== 0x6c6c756e) {
    if (word !== 0x736c6166 || load<u8>(at + 4) !== 0x65) return 0;
    length = 5;
  }
  return isLetterOrDigit(load<u8>(at + length)) ? 0 : length;
}

/** Anything else ends the literal, or is refused elsewhere. */
// @ts-ignore: decorator
@inline
function isLetterOrDigit(byte: u8): bool {
  return byte - 0x30 < 10 || (byte | 0x20) - 0x61 < 26;
}

/**
 * Checks signs and exponents (RFC 8259 section 6).
 *
 * @param exponents letters outside literals that do not begin a value. If one does not follow a digit, another check
 *   fails.
 */
function arePowersGood(at: i32, starts: u64, digits: u64, signs: u64, exponents: u64): bool {
  const a = v128.load(at);
  const b = v128.load(at, 16);
  const c = v128.load(at, 32);
  const d = v128.load(at, 48);
  const minuses = signs & equalTo(a, b, c, d, 0x2d);
  const pluses = signs & equalTo(a, b, c, d, 0x2b);
  const letters = exponents & equalTo(folded(a), folded(b), folded(c), folded(d), 0x65);

  const firstMinuses = minuses & starts;
  afterMinuses = (firstMinuses << 1) | bitOf(FIRST_MINUS);
  const afterSigns = (signs << 1) | bitOf(SIGN);
  const afterExponents = (exponents << 1) | bitOf(EXPONENT);
  const powerStarts = (afterExponents | (afterSigns & ~afterMinuses)) & digits;
  const sum = (powerStarts | bitOf(POWER)) + digits;
  powerBefore =
    ((firstMinuses >> 63) << FIRST_MINUS) |
    ((signs >> 63) << SIGN) |
    ((exponents >> 63) << EXPONENT) |
    ((sum < digits ? (1 as u64) : 0) << POWER);

  const faults =
    (signs ^ (minuses | pluses)) |
    (exponents ^ letters) |
    (minuses & ~(starts | afterExponents)) |
    (pluses & ~afterExponents) |
    (afterSigns & ~digits) |
    (afterExponents & ~(digits | signs)) |
    (exponents & sum & ~digits);
  return faults === 0;
}

// @ts-ignore: decorator
@inline
function bitOf(state: u64): u64 {
  return (powerBefore >> state) & 1;
}
