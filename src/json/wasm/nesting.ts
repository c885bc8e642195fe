// AssemblyScript: see json-blocks.ts.

/** Arrays and objects that are open. */
let depth: i32 = 0;
let isObject: bool = false;

export function beginNesting(): void {
  depth = 0;
  isObject = false;
}

// @ts-ignore: decorator
@inline
export function isNested(): bool {
  return depth !== 0;
}

/** Whether the innermost is an object. */
// @ts-ignore: decorator
@inline
export function isInObject(): bool {
  return isObject;
}

/** One bit per level, in memory that grows. */
export function enter(entersObject: bool): void {
  const word = (__heap_base as i32) + ((depth >> 5) << 2);
  if (word + 4 > memory.size() << 16 && memory.grow(1) < 0) unreachable();
  const bit = 1 << (depth & 31);
  const others = load<i32>(word) & ~bit;
  store<i32>(word, entersObject ? others | bit : others);
  depth++;
  isObject = entersObject;
}

/** At depth 1 or more. */
export function leave(): void {
  depth--;
  const level = depth - 1;
  isObject = depth > 0 && ((load<i32>((__heap_base as i32) + ((level >> 5) << 2)) >>> (level & 31)) & 1) === 1;
}

