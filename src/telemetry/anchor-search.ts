import { createWasmModule } from "../wasm-module.js";
import { ANCHOR_SEARCH_WASM } from "./anchor-search-wasm.js";

/** Pieces of four bytes, as wasm/anchor-search.ts reads them. */
export interface PieceTable {
  /** Bits, and behind them pieces; at most {@link MAX_TABLE_BYTES}. */
  readonly bytes: Uint8Array;
  readonly bitBytes: number;
  /** Words of pieces. */
  readonly places: number;
}

/** What wasm/anchor-search.ts exports. */
interface AnchorSearch {
  readonly memory: { readonly buffer: ArrayBuffer };
  inputAt(): number;
  inputBytes(): number;
  tableAt(): number;
  tableBytes(): number;
  isAnyKept(length: number, step: number, bitBytes: number, places: number): number;
}

/** One for all: nothing is left in it from one search that another one would read. Its memory never grows. */
const SEARCH = createWasmModule<AnchorSearch>(ANCHOR_SEARCH_WASM).createInstance();
const MEMORY = new Uint8Array(SEARCH.memory.buffer);
const INPUT_AT = SEARCH.inputAt();
const INPUT_BYTES = SEARCH.inputBytes();
const TABLE_AT = SEARCH.tableAt();

/** Larger tables cannot be searched with. */
export const MAX_TABLE_BYTES: number = SEARCH.tableBytes();

/** Whether at any `step`th place of the input, from 0 on, a piece stands that the table has. A step is four bytes or more. */
export function isPieceIn({ bytes, bitBytes, places }: PieceTable, input: Uint8Array, step: number): boolean {
  MEMORY.set(bytes, TABLE_AT);
  // Whole steps, so that the next part goes on at the right place; a piece is shorter than a step, so none is cut.
  const most = INPUT_BYTES - (INPUT_BYTES % step);
  for (let at = 0; at < input.length; at += most) {
    const part = input.length <= most ? input : input.subarray(at, at + most);
    MEMORY.set(part, INPUT_AT);
    if (SEARCH.isAnyKept(part.length, step, bitBytes, places) !== 0) return true;
  }
  return false;
}
