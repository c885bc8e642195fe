import { endianness } from "node:os";
import { isPieceIn, MAX_TABLE_BYTES } from "./anchor-search.js";

/** Tells where some texts cannot be, in far less time than it takes to look for them. */
export interface AnchorFilter {
  /** Whether any of them may be in there; false is certain. */
  mayBeInBytes(input: Uint8Array): boolean;
  /** The same of a text. */
  mayBeInText(input: string): boolean;
}

/** Characters that are compared at once. */
const GRAM = 4;
/** Larger steps would make the table larger, too: it holds that many entries for each text. */
const MAX_STEP = 16;
/** Of shorter texts so few characters are left to step over that a plain search is as quick. */
const MIN_LENGTH = 8;

/**
 * Creates a filter for ASCII texts. It looks only at every `step`th place: a text that is longer than a step has one of
 * its four-character pieces there wherever it stands, so all pieces that may be met are kept in a table. A kilobyte takes
 * 64 looks; a search for each of seven texts takes thirty times as long.
 *
 * Undefined when there is none, or a short one, or more than a table holds.
 */
export function createAnchorFilter(texts: readonly string[]): AnchorFilter | undefined {
  const shortest = Math.min(...texts.map((text) => text.length));
  if (texts.length === 0 || shortest < MIN_LENGTH) return undefined;
  const step = Math.min(MAX_STEP, shortest - GRAM + 1);
  const places = 2 ** Math.ceil(Math.log2(2 * step * texts.length));
  const bitWords = places * (BITS_PER_GRAM / 64);
  if (4 * (bitWords + places) > MAX_TABLE_BYTES) return undefined;
  const table = tableOf(texts, step, bitWords, places);
  const bytes = littleEndian(table.words);
  return {
    mayBeInBytes: (input) => isPieceIn({ bytes, bitBytes: 4 * bitWords, places }, input, step),
    mayBeInText(input) {
      if (input.length < shortest) return false;
      for (let at = 0; at + GRAM <= input.length; at += step) if (isIn(table, gramOf(input, at))) return true;
      return false;
    },
  };
}

/**
 * A bit for each hash of a piece of a text, and behind the bits the pieces: nearly everything else is told by a bit that
 * is not set. In one piece of memory, since to allocate it is the larger part of making a table.
 */
interface Table {
  readonly words: Int32Array;
  /** How many words of bits there are. */
  readonly bitWords: number;
  /** Of the open hash table of pieces behind them; 0, which no piece is, marks an empty one. */
  readonly places: number;
}

/** Bits for each piece: one in as many of the others finds one set, and then a processor has guessed wrong. */
const BITS_PER_GRAM = 128;

function tableOf(texts: readonly string[], step: number, bitWords: number, places: number): Table {
  const table = { words: new Int32Array(bitWords + places), bitWords, places };
  for (const text of texts) for (let at = 0; at < step; at++) keep(table, gramOf(text, at));
  return table;
}

/** WebAssembly reads the lowest byte first, whatever this processor does. */
function littleEndian({ buffer }: Int32Array): Uint8Array {
  return endianness() === "LE" ? new Uint8Array(buffer) : Buffer.from(new Uint8Array(buffer)).swap32();
}

function keep({ words, bitWords, places }: Table, gram: number): void {
  const hash = hashOf(gram);
  const word = (hash >>> 5) & (bitWords - 1);
  words[word] = (words[word] as number) | (1 << (hash & 31));
  let place = hash & (places - 1);
  while (words[bitWords + place] !== 0 && words[bitWords + place] !== gram) place = (place + 1) & (places - 1);
  words[bitWords + place] = gram;
}

function isIn({ words, bitWords, places }: Table, gram: number): boolean {
  const hash = hashOf(gram);
  if (((words[(hash >>> 5) & (bitWords - 1)] as number) & (1 << (hash & 31))) === 0) return false;
  let place = hash & (places - 1);
  for (let kept = words[bitWords + place]; kept !== 0; kept = words[bitWords + place]) {
    if (kept === gram) return true;
    place = (place + 1) & (places - 1);
  }
  return false;
}

/**
 * Knuth's multiplicative hash: the upper bits depend on all of the gram. Four bytes of zero are no piece of a text, but
 * may be in an input: they meet an empty place or another entry. wasm/anchor-search.ts has the same one.
 */
function hashOf(gram: number): number {
  return Math.imul(gram, 0x9e3779b1) >>> 12;
}

/** Of characters outside ASCII bits run together, which at most makes a piece look like one that is looked for. */
function gramOf(text: string, at: number): number {
  const low = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 8);
  return low | (text.charCodeAt(at + 2) << 16) | (text.charCodeAt(at + 3) << 24);
}
