/** Finds any of several texts in one pass (Aho and Corasick, https://doi.org/10.1145/360825.360855). */
export interface Automaton {
  /** Length of the longest text. */
  readonly longest: number;
  /** By byte: 1 if it can begin a text, after `canonical()`, or an escape. */
  readonly isFirst: Uint8Array;
  /** By state: how many bytes of a text have matched. The start state is 0, with depth 0. */
  readonly depth: Int32Array;
  /** By state: the length of the longest text that ends there; 0 when none does. */
  readonly ends: Int32Array;
  /** The state after one more byte: the longest prefix of a text that is a suffix of the input so far. */
  next(state: number, byte: number): number;
  /** The same without failure links: 0 when no text that `state` is a prefix of continues with the byte. */
  follow(state: number, byte: number): number;
  /** How many transitions were looked up so far. Linear in the bytes read. */
  looks(): number;
}

/**
 * Creates the automaton for some texts. Each byte of a text is a state, and the next byte is the next state, except in
 * a prefix shared with an earlier text, which uses that text's states.
 *
 * Failure links are computed when a state is first reached. A token of 16 KiB has 150,000 states: computing all links
 * at once would block other calls, and most states are never reached.
 */
export function createAutomaton(texts: readonly Uint8Array[]): Automaton {
  const most = texts.reduce((sum, { length }) => sum + length + 1, 1);
  const [child, sibling, fail, depth, ends] = [0, 0, 0, 0, 0].map(() => new Int32Array(most)) as FiveLists;
  const label = new Uint8Array(most);
  const first = new Int32Array(256);
  let looked = 0;

  function childOf(state: number, byte: number): number {
    looked++;
    if (state === 0) return first[byte] as number;
    if (label[state + 1] === byte) return state + 1;
    let at = child[state] as number;
    while (at !== 0 && label[at] !== byte) at = sibling[at] as number;
    return at;
  }

  function follow(state: number, byte: number): number {
    const to = childOf(state, byte);
    if (to !== 0 && depth[to] === 0) reach(to, state);
    return to;
  }

  function next(state: number, byte: number): number {
    let from = state;
    let to = follow(from, byte);
    while (to === 0 && from !== 0) {
      from = fail[from] as number;
      to = follow(from, byte);
    }
    return to;
  }

  /**
   * Sets the depth and the failure link. The failure state may not be reached yet, so this recurses. It is less deep,
   * and the shallower states of the same text are reached already, so each level of recursion is in another text.
   */
  function reach(state: number, parent: number): void {
    depth[state] = (depth[parent] as number) + 1;
    if (parent !== 0) fail[state] = next(fail[parent] as number, label[state] as number);
    ends[state] ||= ends[fail[state] as number] as number;
  }

  /** Adds a text whose new states begin at `from`. Returns the state where it ends. */
  function add(text: Uint8Array, from: number): number {
    let state = 0;
    let shared = 0;
    for (; shared < text.length; shared++) {
      const to = childOf(state, text[shared] as number);
      if (to === 0) break;
      state = to;
    }
    if (shared === text.length) return state;
    if (state === 0) first[text[0] as number] = from;
    else {
      sibling[from] = child[state] as number;
      child[state] = from;
    }
    label.set(text.subarray(shared), from);
    const end = from + text.length - shared;
    label[end] = NO_LETTER;
    return end - 1;
  }

  let free = 1;
  for (const text of texts) {
    const end = add(text, free);
    if (end >= free) free = end + 2;
    ends[end] = text.length;
  }
  return {
    longest: Math.max(0, ...texts.map(({ length }) => length)),
    isFirst: Uint8Array.from(first, (_, byte) => Number(isLead(byte) || first[canonical(byte)] !== 0)),
    depth,
    ends,
    next,
    follow,
    looks: () => looked,
  };
}

/** Whether the byte begins an escape. */
export function isLead(byte: number): boolean {
  return byte === BACKSLASH || byte === PERCENT;
}

/** Maps base64url to base64 (RFC 4648 sections 4 and 5): the search treats both alphabets as one. */
export function canonical(byte: number): number {
  return byte === 0x2d ? 0x2b : byte === 0x5f ? 0x2f : byte;
}

export const BACKSLASH = 0x5c;
const PERCENT = 0x25;

/** Label of the slot after the last state of a text: `-`, which `canonical()` never returns. */
const NO_LETTER = 0x2d;

type FiveLists = [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
