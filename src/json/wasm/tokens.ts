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

/** What is open, innermost lowest: 1 an object, 0 an array. Above the outermost a 1. All zeros: something is wrong. */
let open: u64 = 1;
/** What found no place in it, in memory that grows: words of 31 levels, with a 1 above them, too. */
let words: i32 = 0;

export function beginNesting(): void {
  open = 1;
  words = 0;
}

// @ts-ignore: decorator
@inline
export function isNested(): bool {
  return open !== 1;
}

/** Whether the last block's brackets did not match, or a comma stood outside of all. */
// @ts-ignore: decorator
@inline
export function isMisnested(): bool {
  return open === 0;
}

/**
 * Positions of which an object is the innermost that is open, where a bracket is in what it opens and out of what it
 * closes. Brackets are looked at one by one.
 */
// @ts-ignore: decorator
@inline
export function objectsOf(at: i32, opening: u64, closing: u64, commas: u64): u64 {
  let levels = open;
  let rest = opening | closing;
  // The positions before the first bracket, which are all of them when there is none.
  if (levels === 1 && ((rest - 1) & ~rest & commas) !== 0) levels = rest = 0;
  let objects: u64 = 0 - (levels & 1);
  for (; rest !== 0; rest &= rest - 1) {
    const bit = rest & (0 - rest);
    const isObject = ((load<u8>(at + (ctz(rest) as i32)) >> 5) & 1) as u64;
    if ((opening & bit) !== 0) {
      levels = (levels << 1) | isObject;
      if (levels >> 63 !== 0) levels = withoutOuter(levels);
    } else {
      levels = (levels & 1) === isObject ? levels >> 1 : 0;
      if (levels <= 1) {
        levels = levelsLeft(levels, commas & (0 - (bit << 1)));
        if (levels === 0) break;
      }
    }
    objects = (objects & (bit - 1)) | ((0 - (levels & 1)) & (0 - bit));
  }
  open = levels;
  return objects;
}

/** Moves the outer 31 of 63 levels out. */
function withoutOuter(levels: u64): u64 {
  const word = (__heap_base as i32) + (words << 2);
  if (word + 4 > memory.size() << 16 && memory.grow(1) < 0) unreachable();
  store<u32>(word, (levels >> 32) as u32);
  words++;
  return (levels & 0xffffffff) | 0x100000000;
}

/** What is open when the last level that was not moved out was closed; nothing else may begin behind the outermost. */
function levelsLeft(levels: u64, commasBehind: u64): u64 {
  // Of the wrong kind, or more than were opened.
  if (levels === 0) return 0;
  if (words === 0) return commasBehind === 0 ? 1 : 0;
  words--;
  return load<u32>((__heap_base as i32) + (words << 2)) as u64;
}

let maxDepth: i32 = i32.MAX_VALUE;
let maxKeys: i32 = i32.MAX_VALUE;
/** Levels that are open behind the last block, and names of members up to there. */
let depth: i32 = 0;
let keys: i32 = 0;
/** Bytes in front of the next block. */
let before: i32 = 0;
let passedAt: i32 = -1;
let isOfKeys: bool = false;

export function beginLimits(mostDepth: i32, mostKeys: i32): void {
  maxDepth = mostDepth;
  maxKeys = mostKeys;
  depth = keys = before = 0;
  passedAt = -1;
}

/** Which byte is the first beyond a limit, if all in front of it is good; -1 for none. */
export function limitPassedAt(): i32 {
  return passedAt;
}

/** Whether that is the limit of names. */
export function isLimitOfKeys(): bool {
  return isOfKeys;
}

/** Counts a block; false when a limit is passed in it. */
// @ts-ignore: decorator
@inline
export function isWithinLimits(opening: u64, closing: u64, names: u64): bool {
  const opened = popcnt(opening) as i32;
  const named = popcnt(names) as i32;
  // More than it may really be: what is closed in the block is looked at when this is not enough.
  const isNear = depth + opened > maxDepth || keys + named > maxKeys;
  if (isNear && !areWithin(opening, closing, names)) return false;
  depth += opened - (popcnt(closing) as i32);
  keys += named;
  return true;
}

/** A block without brackets or names. */
// @ts-ignore: decorator
@inline
export function passBlock(bytes: i32): void {
  before += bytes;
}

function areWithin(opening: u64, closing: u64, names: u64): bool {
  let level = depth;
  let name = keys;
  for (let rest = opening | closing | names; rest !== 0; rest &= rest - 1) {
    const bit = rest & (0 - rest);
    if ((closing & bit) !== 0) level--;
    else if ((names & bit) !== 0) name++;
    else level++;
    if (level <= maxDepth && name <= maxKeys) continue;
    passedAt = before + (ctz(bit) as i32);
    isOfKeys = name > maxKeys;
    return false;
  }
  return true;
}
