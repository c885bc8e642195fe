import { endianness } from "node:os";

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
 * Undefined when there is none, or a short one.
 */
export function createAnchorFilter(texts: readonly string[]): AnchorFilter | undefined {
  const shortest = Math.min(...texts.map((text) => text.length));
  if (texts.length === 0 || shortest < MIN_LENGTH) return undefined;
  const step = Math.min(MAX_STEP, shortest - GRAM + 1);
  const table = tableOf(texts, step);
  // Whole words are read, so bytes are stepped over by words; a smaller step than can be taken misses nothing.
  const wordStep = Math.floor(step / GRAM);
  return {
    mayBeInBytes(input) {
      const words = wordsOf(input);
      for (let at = 0; at < words.length; at += wordStep) if (isIn(table, gramFrom(words[at] as number))) return true;
      return false;
    },
    mayBeInText(input) {
      if (input.length < shortest) return false;
      for (let at = 0; at + GRAM <= input.length; at += step) if (isIn(table, gramOf(input, at))) return true;
      return false;
    },
  };
}

/** The words of four bytes that stand at addresses that a processor reads them from; up to three bytes before are left out. */
function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): Int32Array {
  const start = Math.ceil(byteOffset / GRAM) * GRAM;
  const count = Math.floor((byteOffset + byteLength - start) / GRAM);
  return count > 0 ? new Int32Array(buffer, start, count) : NO_WORDS;
}

const NO_WORDS = new Int32Array();

/** Of a word as this processor reads it, its first byte lowest. */
const gramFrom: (word: number) => number =
  endianness() === "LE"
    ? (word) => word
    : (word) => (word >>> 24) | ((word >>> 8) & 0xff00) | ((word << 8) & 0xff0000) | (word << 24);

/**
 * Pieces of texts, and behind them a bit for each hash of one: nearly everything else is told by a bit that is not set. In
 * one piece of memory, since to allocate it is the larger part of making a table.
 */
interface Table {
  readonly words: Int32Array;
  /** Of the open hash table of pieces that `words` begins with; 0, which no piece is, marks an empty one. */
  readonly places: number;
  /** How many words of bits come behind. */
  readonly bitWords: number;
}

/** Bits for each piece: one in as many of the others finds one set. */
const BITS_PER_GRAM = 32;

function tableOf(texts: readonly string[], step: number): Table {
  const places = 2 ** Math.ceil(Math.log2(2 * step * texts.length));
  const bitWords = places * (BITS_PER_GRAM / 64);
  const table = { words: new Int32Array(places + bitWords), places, bitWords };
  for (const text of texts) for (let at = 0; at < step; at++) keep(table, gramOf(text, at));
  return table;
}

function keep({ words, places, bitWords }: Table, gram: number): void {
  const hash = hashOf(gram);
  const word = places + ((hash >>> 5) & (bitWords - 1));
  words[word] = (words[word] as number) | (1 << (hash & 31));
  let place = hash & (places - 1);
  while (words[place] !== 0 && words[place] !== gram) place = (place + 1) & (places - 1);
  words[place] = gram;
}

function isIn({ words, places, bitWords }: Table, gram: number): boolean {
  const hash = hashOf(gram);
  if (((words[places + ((hash >>> 5) & (bitWords - 1))] as number) & (1 << (hash & 31))) === 0) return false;
  let place = hash & (places - 1);
  for (let kept = words[place]; kept !== 0; kept = words[place]) {
    if (kept === gram) return true;
    place = (place + 1) & (places - 1);
  }
  return false;
}

/**
 * Knuth's multiplicative hash: the upper bits depend on all of the gram. Four bytes of zero are no piece of a text, but
 * may be in an input: they meet an empty place or another entry.
 */
function hashOf(gram: number): number {
  return Math.imul(gram, 0x9e3779b1) >>> 12;
}

/** Of characters outside ASCII bits run together, which at most makes a piece look like one that is looked for. */
function gramOf(text: string, at: number): number {
  const low = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 8);
  return low | (text.charCodeAt(at + 2) << 16) | (text.charCodeAt(at + 3) << 24);
}
