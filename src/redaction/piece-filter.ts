import { createWasmModule } from "../lib/wasm-module.js";
import { PIECE_SEARCH_WASM } from "./piece-search-wasm.js";
import { isLead } from "./unescape.js";

/** Tells where none of some texts can be, in far less time than it takes to read for them. */
export interface PieceFilter {
  /**
   * The bytes that `next()` looks at, until others are loaded into this or another filter; at most {@link PART_BYTES}, and as
   * many of those that follow as are looked at besides.
   */
  load(part: Uint8Array, ahead?: Uint8Array): void;
  /**
   * Which bytes to read closely, from a place on at which no text is begun: up to the end when nothing else is to be read,
   * and not found when no whole text may be among them.
   */
  next(from: number): { readonly isFound: boolean; readonly from: number; readonly to: number };
  /** A place in front of which no text begins, if one may be there; -1 when there is certainly none. */
  firstIn(input: Uint8Array): number;
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
  next(from: number, length: number, step: number, reach: number, tableBytes: number, isStrict: boolean): number;
}

/** One for all. Its memory never grows. */
const SEARCH = createWasmModule<PieceSearch>(PIECE_SEARCH_WASM).createInstance();
const MEMORY = Buffer.from(SEARCH.memory.buffer);
const INPUT_AT = SEARCH.inputAt();
const TABLE_AT = SEARCH.tableAt();
const LETTERS_AT = SEARCH.lettersAt();
const MAX_TABLE_BITS = 8 * SEARCH.tableBytes();
/** The bits of the table that is in it. */
let keptInside: readonly number[] | undefined;

/** Of what follows: enough for most texts that begin in front of it, escaped as writers do. */
export const AHEAD_BYTES = 128;
/** Most bytes that are looked at together, besides those that follow. */
export const PART_BYTES: number = SEARCH.inputBytes() - AHEAD_BYTES;

/** Characters that are compared at once. */
const GRAM = 4;
/** Larger steps would make the table larger, too: it holds that many pieces of each text. */
const MAX_STEP = 16;
/** With two bits set for each piece, one of a few thousand others is taken for one of these. */
const BITS_PER_GRAM = 128;
/** A smaller table is filled no sooner, and where every answer is another user's, a piece that is taken for one is dear. */
const MIN_TABLE_BITS = 65_536;
/** As in wasm/piece-search.ts. */
const [IN_TEXTS, OF_BASE64] = [1, 2] as const;
/** As in wasm/piece-search.ts. */
const HASH_FACTORS = [0x9e3779b1, 0x85ebca6b] as const;
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
 * It looks only at every `step`th place: a run that is longer than a step has one of its four-byte pieces there wherever
 * it stands, and a text that is interrupted only once, by an escape or the end of a line, has such a run before or behind
 * it. Elsewhere escapes are undone, once or in one way again and again, ends of lines are left out, and in what this makes
 * every `step`th place is looked at. Other escapes within escapes are places to read closely.
 *
 * @param maxStep a power of two: with larger steps a search takes less time, and making the filter more.
 * @param letters of texts of which only the beginnings are given: the first `2 * maxStep + 8` bytes are looked at.
 */
export function createPieceFilter(
  texts: readonly Uint8Array[],
  { maxStep = MAX_STEP, letters: more = "" }: { readonly maxStep?: number; readonly letters?: string } = {},
): PieceFilter {
  const { shortest, letters, isOdd } = surveyOf(texts, more);
  const isStrict = shortest < MIN_ESCAPED_LENGTH || isOdd;
  const lost = isStrict ? LINE_LETTERS : ESCAPE_LETTERS;
  const longestStep = (shortest - LINE_LETTERS) / 2 - GRAM + 1;
  const step = Math.max(1, Math.min(maxStep, 2 ** Math.floor(Math.log2(longestStep))));
  const reach = step + lost + GRAM;
  /** Of a text, those that may be met first: in the run that it begins with, or in the next one. */
  const pieces = 2 * step + GRAM + LINE_LETTERS;
  const wanted = 2 ** Math.ceil(Math.log2(BITS_PER_GRAM * pieces * texts.length));
  const tableBytes = Math.min(MAX_TABLE_BITS, Math.max(MIN_TABLE_BITS, wanted)) / 8;
  const kept: number[] = [];
  for (const text of texts) {
    for (let at = 0; at < pieces && at + GRAM <= text.length; at++) keep(kept, tableBytes - 4, text, at);
  }
  let length = 0;
  const isIn = (from: number) => SEARCH.next(from, length, step, reach, tableBytes, isStrict) !== 0;
  const begin = () => {
    if (keptInside === kept) return;
    MEMORY.fill(0, TABLE_AT, TABLE_AT + tableBytes);
    for (let index = 0; index < kept.length; index++) {
      const bit = kept[index] as number;
      const at = TABLE_AT + (bit >>> 3);
      MEMORY[at] = (MEMORY[at] as number) | (1 << (bit & 7));
    }
    MEMORY.set(letters, LETTERS_AT);
    keptInside = kept;
  };
  const filter: PieceFilter = {
    load(part, ahead) {
      begin();
      MEMORY.set(part, INPUT_AT);
      length = part.length;
      if (ahead === undefined || ahead.length === 0) return;
      const beginning = ahead.subarray(0, AHEAD_BYTES);
      MEMORY.set(beginning, INPUT_AT + length);
      length += beginning.length;
    },
    next(from) {
      const isFound = isIn(from);
      return { isFound, from: SEARCH.readFrom(), to: SEARCH.readTo() };
    },
    firstIn(input) {
      if (input.length === 0) return -1;
      for (let at = 0; ; at += SEARCH.readFrom()) {
        filter.load(input.length <= PART_BYTES ? input : input.subarray(at, at + PART_BYTES));
        if (isIn(0)) return at + SEARCH.readFrom();
        if (at + length >= input.length) return -1;
        // Of a part in which nearly all is the end of a line, little is done.
        if (SEARCH.readFrom() < PART_BYTES / 2) return at + SEARCH.readFrom();
      }
    },
    mayBeInBytes: (input) => filter.firstIn(input) !== -1,
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

/** What a filter knows of its texts besides their pieces. Loops over places: it is made for each user who comes by. */
function surveyOf(texts: readonly Uint8Array[], more: string) {
  const letters = new Uint8Array(LETTERS_OF_BASE64);
  for (let at = 0; at < more.length; at++)
    letters[more.charCodeAt(at)] = (letters[more.charCodeAt(at)] ?? 0) | IN_TEXTS;
  let shortest = Number.POSITIVE_INFINITY;
  let isOdd = false;
  for (let index = 0; index < texts.length; index++) {
    const text = texts[index] as Uint8Array;
    shortest = Math.min(shortest, text.length);
    for (let at = 0; at < text.length; at++) {
      const byte = text[at] as number;
      letters[byte] = (letters[byte] as number) | IN_TEXTS;
      isOdd ||= byte > 0x7f || isLead(byte);
    }
  }
  for (const [one, other] of OTHERS) letters[other] = letters[one] as number;
  return { shortest, letters, isOdd };
}

/** A piece, in all the ways in which it may be written. */
function keep(kept: number[], mask: number, text: Uint8Array, at: number): void {
  const gram =
    (text[at] as number) |
    ((text[at + 1] as number) << 8) |
    ((text[at + 2] as number) << 16) |
    ((text[at + 3] as number) << 24);
  keepFrom(kept, mask, gram, 0);
}

function keepFrom(kept: number[], mask: number, gram: number, from: number): void {
  for (let shift = from; shift < 8 * GRAM; shift += 8) {
    const byte = (gram >>> shift) & 0xff;
    if (byte === 0x2b) keepFrom(kept, mask, gram ^ ((0x2b ^ 0x2d) << shift), shift + 8);
    else if (byte === 0x2f) keepFrom(kept, mask, gram ^ ((0x2f ^ 0x5f) << shift), shift + 8);
  }
  for (const factor of HASH_FACTORS) {
    const hash = Math.imul(gram, factor);
    kept.push((((hash >>> 11) & mask) << 3) + (hash >>> 27));
  }
}

/** Of both alphabets (RFC 4648 sections 4 and 5). */
const LETTERS_OF_BASE64 = new Uint8Array(256);
for (const byte of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")) {
  LETTERS_OF_BASE64[byte] = OF_BASE64;
}

/** What also stands for a letter of the alphabet that texts are in: the others of base64url. */
const OTHERS = [
  [0x2b, 0x2d],
  [0x2f, 0x5f],
] as const;
