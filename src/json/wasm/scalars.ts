// AssemblyScript: see json-blocks.ts.

import { afterMinuses, arePowersGood, beginPowers, doesPowerGoOn } from "./powers";
import { literalLength } from "./literals";

const BLOCK: i32 = 64;

/** Bit 0: the block before ended in a number or literal. */
let wasScalar: u64 = 0;
/** Bit 0: it ended in the digits before a number's point. */
let inInteger: u64 = 0;
/** From bit 0 on: what is left of a literal that began in the block before. */
let literalRest: u64 = 0;

export function beginScalars(): void {
  wasScalar = inInteger = literalRest = 0;
  beginPowers();
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
  if ((signs | exponents | doesPowerGoOn()) !== 0) {
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
