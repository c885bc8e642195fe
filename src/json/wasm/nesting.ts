// AssemblyScript: see json-blocks.ts.

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
