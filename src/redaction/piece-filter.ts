import { createWasmModule } from "../lib/wasm-module.js";
import { isLead } from "./automaton.js";
import { PIECE_SEARCH_WASM } from "./piece-search-wasm.js";

/**
 * A Bloom filter for several texts: finds quickly where none of them can be. It has false positives but no false
 * negatives, and is much faster than the automaton.
 */
export interface PieceFilter {
  /**
   * Loads the bytes that `next()` searches, until others are loaded into this or another filter: at most
   * {@link PART_BYTES}, and of `ahead`, the bytes that follow, the first {@link AHEAD_BYTES}.
   */
  load(part: Uint8Array, ahead?: Uint8Array): void;
  /**
   * The next bytes to read closely. No text may be in progress at `from`. Without `isFound` no whole text is among the
   * bytes that are left, and only their end has to be read, where a text may begin.
   */
  next(from: number): { readonly isFound: boolean; readonly from: number; readonly to: number };
  /** An index before which no text begins, if there may be one; -1 when there is certainly none. */
  firstIn(input: Uint8Array): number;
  /** Whether there may be a text; false is certain. */
  mayBeInBytes(input: Uint8Array): boolean;
  /** The same for a string. */
  mayBeInText(input: string): boolean;
}

/** What wasm/piece-search.ts exports. */
interface PieceSearch {
  readonly memory: { readonly buffer: ArrayBuffer };
  inputAt(): number;
  inputBytes(): number;
  tableBytes(): number;
  clear(tableBytes: number): void;
  add(length: number, tableBytes: number): void;
  lettersAt(): number;
  readFrom(): number;
  readTo(): number;
  next(from: number, length: number, step: number, reach: number, tableBytes: number, isStrict: boolean): number;
}

/** Shared by all filters. Its memory never grows. */
const SEARCH = createWasmModule<PieceSearch>(PIECE_SEARCH_WASM).createInstance();
const MEMORY = Buffer.from(SEARCH.memory.buffer);
const INPUT_AT = SEARCH.inputAt();
const LETTERS_AT = SEARCH.lettersAt();
const MAX_TABLE_BITS = 8 * SEARCH.tableBytes();
/** The grams of the filter whose table is loaded. */
let loaded: Uint8Array | undefined;

/** How many of the bytes that follow are looked at: enough for most texts that begin before, with the usual escapes. */
export const AHEAD_BYTES = 128;
/** Most bytes that are searched at once, without those that follow. */
export const PART_BYTES: number = SEARCH.inputBytes() - AHEAD_BYTES;

/** Bytes that are looked up at once: the length of the shortest text that can be found. */
const GRAM = 4;
/** Larger steps need a larger table: it holds at least so many pieces of each text. */
const MAX_STEP = 16;
/** With two bits set for each piece, there is one false positive in a few thousand lookups. */
const BITS_PER_GRAM = 128;
/**
 * A smaller table takes as long to fill, and a false positive is expensive: it may need a new automaton for that user.
 */
const MIN_TABLE_BITS = 65_536;
/** As in wasm/piece-search.ts. */
const [IN_TEXTS, OF_BASE64] = [1, 2] as const;
/** For one UTF-16 code unit. */
const MAX_UTF8_BYTES = 3;
/** A text may begin right after the first letter of an escape that is read literally: at most these are lost. */
const ESCAPE_LETTERS = 5;
/** With shorter texts every escape is read closely: too few bytes remain after it. */
const MIN_ESCAPED_LENGTH = 12;
/** The first letter of base64 may stand alone at the end of a line. */
const LINE_LETTERS = 1;

/**
 * Creates a filter for texts of at least {@link GRAM} bytes, in which `+` also stands for `-` and `/` for `_`.
 *
 * It looks only at the four-byte piece at every `step`th byte. Any run longer than a step has a piece there, wherever
 * it is. A text interrupted only once, by an escape or a line break, has such a run before or after it. Where escapes
 * and line breaks are closer together, it undoes the escapes, once or repeatedly in the same way, drops the line
 * breaks, and looks at every `step`th letter of the result. Other nested escapes have to be read closely.
 *
 * @param maxStep a power of two. Larger steps make the search faster and creating the filter slower.
 * @param letters the bytes that the texts consist of, when only their beginnings are given: the filter uses the first
 *   `2 * maxStep + 8` bytes.
 */
export function createPieceFilter(
  texts: readonly Uint8Array[],
  { maxStep = MAX_STEP, letters: more = "" }: { readonly maxStep?: number; readonly letters?: string } = {},
): PieceFilter {
  const { shortest, letters, isOdd } = surveyOf(texts, more);
  const isStrict = shortest < MIN_ESCAPED_LENGTH || isOdd;
  const lost = isStrict ? LINE_LETTERS : ESCAPE_LETTERS;
  const longestStep = Math.max(1, (shortest - LINE_LETTERS) / 2 - GRAM + 1);
  const step = Math.min(maxStep, 2 ** Math.floor(Math.log2(longestStep)));
  const reach = step + lost + GRAM;
  /** How many pieces of a text may be the first one met: in its first run, or in the next one. */
  const pieces = 2 * step + GRAM + LINE_LETTERS;
  const wanted = 2 ** Math.ceil(Math.log2(BITS_PER_GRAM * pieces * texts.length));
  const tableBytes = Math.min(MAX_TABLE_BITS, Math.max(MIN_TABLE_BITS, wanted)) / 8;
  const grams = gramsOf(texts, pieces);
  let length = 0;
  const isIn = (from: number) => SEARCH.next(from, length, step, reach, tableBytes, isStrict) !== 0;
  const begin = () => {
    if (loaded === grams) return;
    SEARCH.clear(tableBytes);
    for (let at = 0; at < grams.length; at += PART_BYTES) {
      const part = grams.subarray(at, at + PART_BYTES);
      MEMORY.set(part, INPUT_AT);
      SEARCH.add(part.length, tableBytes);
    }
    MEMORY.set(letters, LETTERS_AT);
    loaded = grams;
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
        // In a part that is mostly line breaks the filter makes little progress: read closely from there.
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

/** What a filter knows about its texts besides their pieces. Uses index loops for speed: each user has a filter. */
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

/** The first pieces of each text in both base64 alphabets, one after the other. */
function gramsOf(texts: readonly Uint8Array[], pieces: number): Uint8Array {
  const grams: number[] = [];
  for (const text of texts) {
    for (let at = 0; at < pieces && at + GRAM <= text.length; at++) {
      const gram =
        (text[at] as number) |
        ((text[at + 1] as number) << 8) |
        ((text[at + 2] as number) << 16) |
        ((text[at + 3] as number) << 24);
      addGram(grams, gram, 0);
    }
  }
  // Not from the pool of small buffers: each user keeps these.
  const bytes = Buffer.allocUnsafeSlow(GRAM * grams.length);
  for (let index = 0; index < grams.length; index++) bytes.writeInt32LE(grams[index] as number, GRAM * index);
  return bytes;
}

/** Adds a piece, and the same with `-` for `+` and `_` for `/` from the bit `from` on. */
function addGram(grams: number[], gram: number, from: number): void {
  for (let shift = from; shift < 8 * GRAM; shift += 8) {
    const byte = (gram >>> shift) & 0xff;
    if (byte === 0x2b) addGram(grams, gram ^ ((0x2b ^ 0x2d) << shift), shift + 8);
    else if (byte === 0x2f) addGram(grams, gram ^ ((0x2f ^ 0x5f) << shift), shift + 8);
  }
  grams.push(gram);
}

/** Letters of both base64 alphabets (RFC 4648 sections 4 and 5). */
const LETTERS_OF_BASE64 = new Uint8Array(256);
for (const byte of Buffer.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")) {
  LETTERS_OF_BASE64[byte] = OF_BASE64;
}

/** Letters of base64 that base64url writes differently. */
const OTHERS = [
  [0x2b, 0x2d],
  [0x2f, 0x5f],
] as const;
