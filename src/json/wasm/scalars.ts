// AssemblyScript: see json-blocks.ts.

import { equalTo, folded } from "./sets";

const BLOCK: i32 = 64;

/** Bit 0: the block before ended in a number or literal. */
let wasScalar: u64 = 0;
/** Bit 0: it ended in the digits before a number's point. */
let inInteger: u64 = 0;
/** From bit 0 on: what is left of a literal that began in the block before. */
let literalRest: u64 = 0;

// Signs and exponents of numbers, which few blocks have.

/** What the block before ended in, a bit for each of these; mostly 0, and then nothing has to be done about it. */
let powerBefore: u64 = 0;
const FIRST_MINUS: u64 = 0;
const SIGN: u64 = 1;
const EXPONENT: u64 = 2;
/** The digits of an exponent. */
const POWER: u64 = 3;

/** What `arePowersGood()` leaves: the positions behind the signs that numbers begin with. */
let afterMinuses: u64 = 0;

export function beginScalars(): void {
  wasScalar = inInteger = literalRest = 0;
  powerBefore = 0;
}

/** Bit 0: a number or literal ended with the block before, or goes on. */
// @ts-ignore: decorator
@inline
export function wasInScalar(): u64 {
  return wasScalar;
}

/**
 * Numbers and literals (RFC 8259 sections 3 and 6).
 *
 * @param scalars all their bytes, and all others that belong to nothing else.
 * @param letterSet bytes with bit 6, inside of strings, too, and so are the other sets.
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

  // Digits that are not of a number's integer need no look: they stand behind a point, sign or exponent, which do.
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

/** How long the literal is that stands there with nothing behind it that it could go on with; 0 when none does. */
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

/** Anything else is refused, or ends the literal, without this. */
// @ts-ignore: decorator
@inline
function isLetterOrDigit(byte: u8): bool {
  return byte - 0x30 < 10 || (byte | 0x20) - 0x61 < 26;
}

/**
 * RFC 8259 section 6, as to signs and exponents.
 *
 * @param exponents letters that are of no literal and no value's first: behind anything but a digit something else is
 * missing.
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
