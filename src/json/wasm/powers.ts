// AssemblyScript: see json-blocks.ts.

import { equalTo, folded } from "./sets";

// Signs and exponents of numbers, which few blocks have.

/** What the block before ended in, a bit for each of these; mostly 0, and then nothing has to be done about it. */
let before: u64 = 0;
const FIRST_MINUS: u64 = 0;
const SIGN: u64 = 1;
const EXPONENT: u64 = 2;
/** The digits of an exponent. */
const POWER: u64 = 3;

/** What `arePowersGood()` leaves: the positions behind the signs that numbers begin with. */
export let afterMinuses: u64 = 0;

export function beginPowers(): void {
  before = 0;
}

/** Not 0 when the first bytes of the block are to be looked at because of those before. */
// @ts-ignore: decorator
@inline
export function doesPowerGoOn(): u64 {
  return before;
}

/**
 * RFC 8259 section 6, as to signs and exponents.
 *
 * @param exponents letters that are of no literal and no value's first: behind anything but a digit something else is
 * missing.
 */
export function arePowersGood(at: i32, starts: u64, digits: u64, signs: u64, exponents: u64): bool {
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
  before =
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
  return (before >> state) & 1;
}
