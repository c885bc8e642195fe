import { createWasmModule } from "../wasm-module.js";
import { PIECE_SEARCH_WASM } from "./piece-search-wasm.js";

/** Tells where none of some texts can be, in far less time than it takes to read for them. */
export interface PieceFilter {
  /** A text that begins in so many bytes before a place that `next()` gives, or later, is found by reading from there. */
  readonly reach: number;
  /** The bytes that `next()` looks at, until others are loaded into this or another filter; at most {@link PART_BYTES}. */
  load(part: Uint8Array): void;
  /** Where to read closely, from a place on at which no text is begun; -1 when there is no such place. */
  next(from: number): number;
  /** Whether there is any such place; false is certain. */
  mayBeInBytes(input: Uint8Array): boolean;
  /** The same of a text. */
  mayBeInText(input: string): boolean;
}

/** What wasm/piece-search.ts exports. */
interface PieceSearch {
  readonly memory: { readonly buffer: ArrayBuffer };
  inputAt(): number;
  inputBytes(): number;
  tableAt(): number;
  tableBytes(): number;
  lettersAt(): number;
  next(from: number, length: number, step: number, bits: number): number;
}

/** One for all: nothing is left in it from one search that another one would read. Its memory never grows. */
const SEARCH = createWasmModule<PieceSearch>(PIECE_SEARCH_WASM).createInstance();
const MEMORY = Buffer.from(SEARCH.memory.buffer);
const INPUT_AT = SEARCH.inputAt();
const TABLE_AT = SEARCH.tableAt();
const LETTERS_AT = SEARCH.lettersAt();
const MAX_TABLE_BITS = 8 * SEARCH.tableBytes();

/** Most bytes that are looked at together. */
export const PART_BYTES: number = SEARCH.inputBytes();

/** Characters that are compared at once. */
const GRAM = 4;
/** Larger steps would make the table larger, too: it holds that many pieces of each text. */
const MAX_STEP = 16;
/** One in as many pieces of other texts is taken for one of these. */
const BITS_PER_GRAM = 128;
/** Of one character of UTF-16. */
const MAX_UTF8_BYTES = 3;

/**
 * Creates a filter for texts of at least seven bytes, in which `+` also stands for `-` and `/` for `_`.
 *
 * It looks only at every `step`th place: a text that is longer than a step has one of its four-byte pieces there wherever
 * it stands, unless an escape or the end of a line is in it, and these are places to read closely anyway. A kilobyte takes
 * 64 looks.
 */
export function createPieceFilter(texts: readonly Uint8Array[]): PieceFilter {
  const shortest = Math.min(...texts.map((text) => text.length));
  const step = Math.min(MAX_STEP, 2 ** Math.floor(Math.log2(shortest - GRAM + 1)));
  const bits = Math.min(MAX_TABLE_BITS, 2 ** Math.ceil(Math.log2(BITS_PER_GRAM * step * texts.length)));
  const table = new Uint8Array(bits / 8);
  const letters = new Uint8Array(256);
  for (const text of texts) {
    for (let at = 0; at < step; at++) keep(table, bits - 1, text, at);
    for (const byte of text) letters[byte] = 1;
  }
  for (const [one, other] of OTHERS) letters[other] = letters[one] as number;
  // A character of two bytes and more stands for any of them.
  letters[0xff] = Number(letters.subarray(0x80).includes(1));
  for (let byte = 0x80; byte < 0xff; byte++) letters[byte] = letters[0xff];
  const begin = () => {
    MEMORY.set(table, TABLE_AT);
    MEMORY.set(letters, LETTERS_AT);
  };
  let length = 0;
  const mayBeInPart = () => SEARCH.next(0, length, step, bits) !== -1;
  const filter: PieceFilter = {
    reach: step + GRAM,
    load(part) {
      begin();
      MEMORY.set(part, INPUT_AT);
      length = part.length;
    },
    next: (from) => SEARCH.next(from, length, step, bits),
    mayBeInBytes(input) {
      // Parts overlap, so that no text is cut by the border of two.
      for (let at = 0; at === 0 || at + shortest <= input.length; at += PART_BYTES - step - GRAM) {
        filter.load(input.length <= PART_BYTES ? input : input.subarray(at, at + PART_BYTES));
        if (mayBeInPart()) return true;
      }
      return false;
    },
    mayBeInText(input) {
      if (input.length < shortest) return false;
      if (input.length > PART_BYTES / MAX_UTF8_BYTES) return filter.mayBeInBytes(Buffer.from(input));
      begin();
      length = MEMORY.write(input, INPUT_AT);
      return mayBeInPart();
    },
  };
  return filter;
}

/** A piece, in all the ways in which it may be written. */
function keep(table: Uint8Array, mask: number, text: Uint8Array, at: number): void {
  const gram =
    (text[at] as number) |
    ((text[at + 1] as number) << 8) |
    ((text[at + 2] as number) << 16) |
    ((text[at + 3] as number) << 24);
  keepFrom(table, mask, gram, 0);
}

function keepFrom(table: Uint8Array, mask: number, gram: number, from: number): void {
  for (let shift = from; shift < 8 * GRAM; shift += 8) {
    const byte = (gram >>> shift) & 0xff;
    if (byte === 0x2b) keepFrom(table, mask, gram ^ ((0x2b ^ 0x2d) << shift), shift + 8);
    else if (byte === 0x2f) keepFrom(table, mask, gram ^ ((0x2f ^ 0x5f) << shift), shift + 8);
  }
  const hash = (Math.imul(gram, 0x9e3779b1) >>> 12) & mask;
  table[hash >>> 3] = (table[hash >>> 3] as number) | (1 << (hash & 7));
}

/** What also stands for a letter of the alphabet that texts are in: the others of base64url. */
const OTHERS: ReadonlyMap<number, number> = new Map([
  [0x2b, 0x2d],
  [0x2f, 0x5f],
]);
