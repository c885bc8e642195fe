// AssemblyScript: see json-blocks.ts.

// What the next token may be. Between blocks bit 0 is set in one of these; in none inside a string, number or literal.
let valueNext: u64 = 1;
let colonNext: u64 = 0;
let endNext: u64 = 0;
// Also possible: after an opening bracket, and after that or a comma in an object.
let firstNext: u64 = 0;
let keyNext: u64 = 0;
/** Bit 0: the string that continues in the next block is a member name. */
let inKey: u64 = 0;

/** Set by `areTokensGood()`: where member names begin. */
export let nameStarts: u64 = 0;

export function beginTokens(): void {
  valueNext = 1;
  colonNext = endNext = firstNext = keyNext = inKey = 0;
}

/** Whether a value is complete and nothing more is required. */
export function mayEnd(): bool {
  return endNext === 1;
}

/**
 * Whether every token may follow the one before it.
 *
 * After each token, a mark is set for what may come next. Adding the set of white space moves each mark over the white
 * space that follows, if any, or out of the block, which shows as an overflow of the sum. With `spaces` 0 the compiler
 * omits the additions.
 *
 * @param objects see `objectsOf()`.
 * @param beginnings where values begin, and all bytes of numbers and literals.
 * @param afterScalars the positions after numbers and literals.
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

  // A name is a run of ones in `strings`, up to its closing quote.
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

/** The open levels, innermost in the lowest bit: 1 an object, 0 an array. A 1 above the outermost. 0: misnested. */
let open: u64 = 1;
/** Number of words with outer levels that `open` has no room for: 31 levels each, with a 1 above; in growing memory. */
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

/** Whether brackets of the last block did not match, or a comma was outside all brackets. */
// @ts-ignore: decorator
@inline
export function isMisnested(): bool {
  return open === 0;
}

/**
 * The positions whose innermost open level is an object. An opening bracket counts as inside what it opens, a closing
 * one as outside what it closes. Handles brackets one by one.
 */
// @ts-ignore: decorator
@inline
export function objectsOf(at: i32, opening: u64, closing: u64, commas: u64): u64 {
  let levels = open;
  let rest = opening | closing;
  // The positions before the first bracket: all positions if there is none.
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

/** Moves the outer 31 of 63 levels to memory. */
function withoutOuter(levels: u64): u64 {
  const word = (__heap_base as i32) + (words << 2);
  if (word + 4 > memory.size() << 16 && memory.grow(1) < 0) unreachable();
  store<u32>(word, (levels >> 32) as u32);
  words++;
  return (levels & 0xffffffff) | 0x100000000;
}

/** The open levels after the last one in `open` was closed. No comma may follow the outermost level. */
function levelsLeft(levels: u64, commasBehind: u64): u64 {
  // A bracket of the wrong kind, or more closed than opened.
  if (levels === 0) return 0;
  if (words === 0) return commasBehind === 0 ? 1 : 0;
  words--;
  return load<u32>((__heap_base as i32) + (words << 2)) as u64;
}

let maxDepth: i32 = i32.MAX_VALUE;
let maxKeys: i32 = i32.MAX_VALUE;
/** Open levels after the last block, and member names up to there. */
let depth: i32 = 0;
let keys: i32 = 0;
/** Number of bytes before the next block. */
let before: i32 = 0;
let passedAt: i32 = -1;
let isOfKeys: bool = false;

export function beginLimits(mostDepth: i32, mostKeys: i32): void {
  maxDepth = mostDepth;
  maxKeys = mostKeys;
  depth = keys = before = 0;
  passedAt = -1;
}

/** Index of the byte that exceeds a limit, provided that all bytes before it are valid; -1: none. */
export function limitPassedAt(): i32 {
  return passedAt;
}

/** Whether that is the limit of member names. */
export function isLimitOfKeys(): bool {
  return isOfKeys;
}

/** Counts a block; false if a limit is exceeded in it. */
// @ts-ignore: decorator
@inline
export function isWithinLimits(opening: u64, closing: u64, names: u64): bool {
  const opened = popcnt(opening) as i32;
  const named = popcnt(names) as i32;
  // An upper bound, which ignores closing brackets; only when it exceeds a limit is the block counted exactly.
  const isNear = depth + opened > maxDepth || keys + named > maxKeys;
  if (isNear && !areWithin(opening, closing, names)) return false;
  depth += opened - (popcnt(closing) as i32);
  keys += named;
  return true;
}

/** Counts the bytes of a block. */
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
