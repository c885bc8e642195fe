// AssemblyScript: see json-blocks.ts.

const BLOCK: i32 = 64;
const ALL: u64 = 0xffffffffffffffff;

/** Bytes of the grammar's table, of which the states of numbers and literals are used. */
const TABLE_BYTES: i32 = 65536;
const TABLE: i32 = memory.data(TABLE_BYTES, 16) as i32;

/** State of the number or literal that goes on; 0 when none does. */
let scalarState: i32 = 0;
/** State in which a value begins, and that after a whole value: the grammar's. */
let valueState: i32 = 0;
let afterState: i32 = 0;

/** Where the caller puts the grammar's transitions, once. */
export function tableAt(): i32 {
  return TABLE;
}

export function beginScalars(value: i32, after: i32): void {
  scalarState = 0;
  valueState = value;
  afterState = after;
}

/** Bit 0: a number or literal goes on from the block before. */
// @ts-ignore: decorator
@inline
export function doesScalarGoOn(): u64 {
  return scalarState !== 0 ? 1 : 0;
}

/** Numbers and literals, one by one. */
export function areScalarsGood(at: i32, scalars: u64, digits: u64): bool {
  let rest = scalars;
  if (scalarState !== 0) {
    const length = ctz(~scalars) as i32;
    if (!isScalarGood(at, length, length === BLOCK)) return false;
    if (length === BLOCK) return true;
    rest &= ALL << length;
  }
  while (rest !== 0) {
    const start = ctz(rest) as i32;
    const length = ctz(~(scalars >> start)) as i32;
    const next = start + length;
    if (next === BLOCK || !isCommonScalar(at + start, length, digits >> start)) {
      scalarState = valueState;
      if (!isScalarGood(at + start, length, next === BLOCK)) return false;
      if (next === BLOCK) return true;
    }
    rest &= ALL << next;
  }
  return true;
}

/** Whole numbers and literals: most of all scalars, known without a look at each byte. False says nothing. */
function isCommonScalar(at: i32, length: i32, digits: u64): bool {
  const first = load<u8>(at);
  if (first <= 0x39) return first > 0x30 && (ctz(~digits) as i32) >= length;
  if (length === 4) return load<u32>(at) === 0x65757274 || load<u32>(at) === 0x6c6c756e;
  return length === 5 && load<u32>(at) === 0x736c6166 && load<u8>(at + 4) === 0x65;
}

function isScalarGood(at: i32, length: i32, goesOn: bool): bool {
  let state = scalarState;
  for (let index = 0; index < length; index++) state = load<u16>(TABLE + ((state + load<u8>(at + index)) << 1));
  scalarState = goesOn ? state : 0;
  // No state follows state 0. What may end here goes on to the end of the value with white space.
  return goesOn ? state !== 0 : load<u16>(TABLE + ((state + 0x20) << 1)) === afterState;
}

