// AssemblyScript: see json-blocks.ts.

// What the next token may be: one of these has bit 0 set between blocks, none inside of a string, number or literal.
let valueNext: u64 = 1;
let colonNext: u64 = 0;
let endNext: u64 = 0;
// What else it may be: behind an opening bracket, and behind that or a comma in an object.
let firstNext: u64 = 0;
let keyNext: u64 = 0;
/** Bit 0: the string that goes on is a member's name. */
let inKey: u64 = 0;

/** What `areTokensGood()` leaves: where names of members begin. */
export let nameStarts: u64 = 0;

export function beginTokens(): void {
  valueNext = 1;
  colonNext = endNext = firstNext = keyNext = inKey = 0;
}

/** Whether a value has ended, and nothing is wanted. */
export function mayEnd(): bool {
  return endNext === 1;
}

/**
 * Whether every token is where what ended before it lets it be.
 *
 * What may come next is marked behind what ended. A sum moves each mark over the white space that it lies at the
 * beginning of, if any, and out of the block where it is less than a summand; without white space the compiler leaves the
 * sums out.
 *
 * @param objects see `objectsOf()`.
 * @param beginnings where values begin, and all the bytes of numbers and literals.
 * @param afterScalars the positions behind numbers and literals.
 */
// @ts-ignore: decorator
@inline
export function areTokensGood(
  strings: u64,
  quotes: u64,
  spaces: u64,
  opening: u64,
  closing: u64,
  commas: u64,
  colons: u64,
  objects: u64,
  beginnings: u64,
  afterScalars: u64,
): bool {
  const starts = quotes & strings;
  const ends = quotes ^ starts;

  const dividers = commas | colons;
  let marks = (dividers << 1) | valueNext;
  let sum = marks + spaces;
  const values = sum & ~spaces;
  valueNext = (dividers >> 63) | (sum < marks ? 1 : 0);

  marks = (opening << 1) | firstNext;
  sum = marks + spaces;
  const firsts = sum & ~spaces;
  firstNext = (opening >> 63) | (sum < marks ? 1 : 0);

  const memberMarks = (commas | opening) & objects;
  marks = (memberMarks << 1) | keyNext;
  sum = marks + spaces;
  const keys = sum & ~spaces;
  keyNext = (memberMarks >> 63) | (sum < marks ? 1 : 0);

  // A name's string is a run of ones, up to its closing quote.
  nameStarts = starts & keys;
  marks = nameStarts | inKey;
  sum = marks + strings;
  const keyEnds = sum & ends;
  inKey = sum < marks ? 1 : 0;
  marks = (keyEnds << 1) | colonNext;
  sum = marks + spaces;
  const afterKeys = sum & ~spaces;
  colonNext = (keyEnds >> 63) | (sum < marks ? 1 : 0);

  const valueEnds = (ends ^ keyEnds) | closing;
  marks = (valueEnds << 1) | afterScalars | endNext;
  sum = marks + spaces;
  const afterValues = sum & ~spaces;
  endNext = (valueEnds >> 63) | (sum < marks ? 1 : 0);

  const faults =
    (values & ~beginnings) |
    (firsts & ~(beginnings | closing)) |
    (keys & ~(starts | closing)) |
    (afterKeys ^ colons) |
    (afterValues & ~(commas | closing));
  return faults === 0;
}
