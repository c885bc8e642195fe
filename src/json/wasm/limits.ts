// AssemblyScript: see json-blocks.ts.

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
