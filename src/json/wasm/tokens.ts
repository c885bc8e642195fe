// AssemblyScript: see json-blocks.ts.

import { enter, isInObject, isNested, leave } from "./nesting";

const ALL: u64 = 0xffffffffffffffff;

// What the next token may be: one of these has bit 0 set between blocks, none inside of a string, number or literal.
let valueNext: u64 = 1;
let firstElementNext: u64 = 0;
let keyNext: u64 = 0;
let firstKeyNext: u64 = 0;
let colonNext: u64 = 0;
let endNext: u64 = 0;
/** Bit 0: the string that goes on is a member's name. */
let inKey: u64 = 0;

/** Which of the opening brackets are of objects, and which positions have an object as their innermost. */
let objectStarts: u64 = 0;
let objects: u64 = 0;

/** What the last `reached()` leaves for the next block: bit 0. */
let carried: u64 = 0;

export function beginTokens(): void {
  valueNext = 1;
  firstElementNext = keyNext = firstKeyNext = colonNext = endNext = inKey = 0;
}

/** Whether a value has ended, and nothing is wanted. */
export function mayEnd(): bool {
  return endNext === 1;
}

/** Whether every token is where what ended before it lets it be. */
export function areTokensGood(
  at: i32,
  strings: u64,
  quotes: u64,
  spaces: u64,
  opening: u64,
  closing: u64,
  commas: u64,
  colons: u64,
  scalars: u64,
  afterScalars: u64,
): bool {
  const starts = quotes & strings;
  const ends = quotes & ~strings;
  if (!areBracketsGood(at, opening, closing, commas, ~(strings | spaces) | starts)) return false;

  const firstKeys = after(objectStarts << 1, objectStarts, firstKeyNext, spaces);
  firstKeyNext = carried;
  const arrayStarts = opening & ~objectStarts;
  const firstElements = after(arrayStarts << 1, arrayStarts, firstElementNext, spaces);
  firstElementNext = carried;
  const memberCommas = commas & objects;
  const nextKeys = after(memberCommas << 1, memberCommas, keyNext, spaces);
  keyNext = carried;
  const valueMarks = colons | (commas & ~objects);
  const values = after(valueMarks << 1, valueMarks, valueNext, spaces);
  valueNext = carried;

  // A name's string is a run of ones that the sum carries over, to its closing quote.
  const keyEnds = after(starts & (firstKeys | nextKeys), 0, inKey, strings) & ends;
  inKey = carried;
  const afterKeys = after(keyEnds << 1, keyEnds, colonNext, spaces);
  colonNext = carried;
  const valueEnds = (ends & ~keyEnds) | closing;
  const afterValues = after((valueEnds << 1) | afterScalars, valueEnds, endNext, spaces);
  endNext = carried;

  const beginnings = starts | opening | scalars;
  const faults =
    (values & ~beginnings) |
    (firstElements & ~(beginnings | closing)) |
    (firstKeys & ~(starts | closing)) |
    (nextKeys & ~starts) |
    (afterKeys ^ colons) |
    (afterValues & ~(commas | closing));
  return faults === 0;
}

/**
 * Where the marks come to lie when each is moved over the run that it lies at the beginning of, if any: a sum carries it.
 *
 * @param last of the block: a mark that belongs to the next block's first position.
 * @param before bit 0: what was carried out of the block before.
 */
// @ts-ignore: decorator
@inline
function after(marks: u64, last: u64, before: u64, runs: u64): u64 {
  const all = marks | before;
  const sum = all + runs;
  carried = (last >> 63) | (sum < all ? 1 : 0);
  return sum & ~runs;
}

/** Brackets, one by one: they match, and at depth 0 there is one value and nothing to divide. */
function areBracketsGood(at: i32, opening: u64, closing: u64, commas: u64, tokens: u64): bool {
  const brackets = opening | closing;
  const belowFirst = brackets === 0 ? ALL : (brackets - 1) & ~brackets;
  if (!isNested() && (commas & belowFirst) !== 0) return false;
  objects = isInObject() ? ALL : 0;
  objectStarts = 0;
  for (let rest = brackets; rest !== 0; rest &= rest - 1) {
    const bit = rest & (0 - rest);
    const above = ~(bit | (bit - 1));
    const isObject = load<u8>(at + (ctz(bit) as i32)) >= 0x7b;
    if ((opening & bit) !== 0) {
      if (isObject) objectStarts |= bit;
      enter(isObject);
    } else {
      if (!isNested() || isInObject() !== isObject) return false;
      leave();
      if (!isNested() && (tokens & above) !== 0) return false;
    }
    objects = (objects & ~above) | (isInObject() ? above : 0);
  }
  return true;
}
