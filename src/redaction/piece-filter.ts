import { createWasmModule } from "../lib/wasm-module.js";
import { PIECE_SEARCH_WASM } from "./piece-search-wasm.js";
import { isLead } from "./unescape.js";

/** Tells where none of some texts can be, in far less time than it takes to read for them. */
export interface PieceFilter {
  /** The bytes that `next()` looks at, until others are loaded into this or another filter; at most {@link PART_BYTES}. */
  load(part: Uint8Array): void;
  /** Which bytes to read closely, from a place on at which no text is begun: up to the end when nothing else is to be read. */
  next(from: number): { readonly from: number; readonly to: number };
  /** Whether any may be there; false is certain. */
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
  readFrom(): number;
  readTo(): number;
  next(from: number, length: number, step: number, reach: number, bits: number, isStrict: boolean): number;
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
/** With three bits set for each piece, few of a hundred thousand others are taken for one of these. */
const BITS_PER_GRAM = 128;
/** As in wasm/piece-search.ts. */
const HASH_FACTORS = [0x9e3779b1, 0x85ebca6b, 0xc2b2ae35] as const;
/** Of one character of UTF-16. */
const MAX_UTF8_BYTES = 3;
/** A text may begin behind the first letter of an escape, which is then read as it stands. */
const ESCAPE_LETTERS = 5;
/** Of shorter texts too little would be left behind an escape. */
const MIN_ESCAPED_LENGTH = 12;
/** The first letter of base64 may stand alone at the end of a line. */
const LINE_LETTERS = 1;

/**
 * Creates a filter for texts of at least eight bytes, in which `+` also stands for `-` and `/` for `_`.
 *
 * It undoes what is escaped once, or in one way again and again, and leaves out the ends of lines. In what this makes it
 * looks only at every `step`th place: a text that is longer than a step has one of its four-byte pieces there wherever it
 * stands. Other escapes within escapes are places to read closely.
 */
export function createPieceFilter(texts: readonly Uint8Array[]): PieceFilter {
  const shortest = Math.min(...texts.map((text) => text.length));
  const isStrict =
    shortest < MIN_ESCAPED_LENGTH || texts.some((text) => text.some((byte) => isLead(byte) || byte > 0x7f));
  const lost = isStrict ? LINE_LETTERS : ESCAPE_LETTERS;
  const step = Math.min(MAX_STEP, 2 ** Math.floor(Math.log2(shortest - lost - GRAM + 1)));
  const reach = step + lost + GRAM;
  const bits = Math.min(MAX_TABLE_BITS, 2 ** Math.ceil(Math.log2(BITS_PER_GRAM * step * texts.length)));
  const table = new Uint8Array(bits / 8);
  const letters = new Uint8Array(256);
  for (const text of texts) {
    for (let at = 0; at < step + lost && at + GRAM <= text.length; at++) keep(table, bits - 1, text, at);
    for (const byte of text) letters[byte] = 1;
  }
  for (const [one, other] of OTHERS) letters[other] = letters[one] as number;
  let length = 0;
  const isIn = (from: number) => SEARCH.next(from, length, step, reach, bits, isStrict) !== 0;
  const begin = () => {
    MEMORY.set(table, TABLE_AT);
    MEMORY.set(letters, LETTERS_AT);
  };
  const filter: PieceFilter = {
    load(part) {
      begin();
      MEMORY.set(part, INPUT_AT);
      length = part.length;
    },
    next(from) {
      isIn(from);
      return { from: SEARCH.readFrom(), to: SEARCH.readTo() };
    },
    mayBeInBytes(input) {
      if (input.length === 0) return false;
      for (let at = 0; ; at += SEARCH.readFrom()) {
        filter.load(input.length <= PART_BYTES ? input : input.subarray(at, at + PART_BYTES));
        if (isIn(0)) return true;
        if (at + length >= input.length) return false;
        // Of a part in which nearly all is the end of a line, little is done.
        if (SEARCH.readFrom() < PART_BYTES / 2) return true;
      }
    },
    mayBeInText(input) {
      if (input.length < shortest) return false;
      if (input.length > PART_BYTES / MAX_UTF8_BYTES) return filter.mayBeInBytes(Buffer.from(input));
      begin();
      length = MEMORY.write(input, INPUT_AT);
      return isIn(0);
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
  for (const factor of HASH_FACTORS) {
    const hash = (Math.imul(gram, factor) >>> 12) & mask;
    table[hash >>> 3] = (table[hash >>> 3] as number) | (1 << (hash & 7));
  }
}

/** What also stands for a letter of the alphabet that texts are in: the others of base64url. */
const OTHERS: ReadonlyMap<number, number> = new Map([
  [0x2b, 0x2d],
  [0x2f, 0x5f],
]);
