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
  return {
    mayBeInBytes(input) {
      for (let at = 0; at + GRAM <= input.length; at += step) {
        const low = (input[at] as number) | ((input[at + 1] as number) << 8);
        const gram = low | ((input[at + 2] as number) << 16) | ((input[at + 3] as number) << 24);
        if (isIn(table, gram)) return true;
      }
      return false;
    },
    mayBeInText(input) {
      if (input.length < shortest) return false;
      for (let at = 0; at + GRAM <= input.length; at += step) if (isIn(table, gramOf(input, at))) return true;
      return false;
    },
  };
}

/** An open hash table; 0, which no piece of a text is, marks an empty place. */
function tableOf(texts: readonly string[], step: number): Int32Array {
  const table = new Int32Array(2 ** Math.ceil(Math.log2(2 * step * texts.length)));
  for (const text of texts) {
    for (let at = 0; at < step; at++) {
      const gram = gramOf(text, at);
      let place = placeOf(gram, table);
      while (table[place] !== 0 && table[place] !== gram) place = (place + 1) & (table.length - 1);
      table[place] = gram;
    }
  }
  return table;
}

function isIn(table: Int32Array, gram: number): boolean {
  let place = placeOf(gram, table);
  for (let kept = table[place]; kept !== 0; kept = table[place]) {
    if (kept === gram) return true;
    place = (place + 1) & (table.length - 1);
  }
  return false;
}

/** Four bytes of zero are no piece of a text, but may be in an input: they meet an empty place or another entry. */
function placeOf(gram: number, table: Int32Array): number {
  // Knuth's multiplicative hash: the upper bits depend on all of the gram.
  return (Math.imul(gram, 0x9e3779b1) >>> 16) & (table.length - 1);
}

/** Of characters outside ASCII bits run together, which at most makes a piece look like one that is looked for. */
function gramOf(text: string, at: number): number {
  const low = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 8);
  return low | (text.charCodeAt(at + 2) << 16) | (text.charCodeAt(at + 3) << 24);
}
