import { canonical, isLead } from "./unescape.js";

/** A text that may occur in ordinary text: a secret without its escapes and the backslashes at its end. */
export interface Remainder {
  readonly text: Uint8Array;
  /** How many bytes the whole secret takes at least, however it is spelled. */
  readonly minBytes: number;
  /** Whether backslashes have to follow; they count towards `minBytes`. */
  readonly isCut: boolean;
}

/** Finds any of several texts in one pass (Aho and Corasick, https://doi.org/10.1145/360825.360855). */
export interface Automaton {
  /** Length of the longest text. */
  readonly longest: number;
  /** Whether a text has a line break. */
  readonly hasLineBreak: boolean;
  /** By byte: 1 if it can begin a text, after `canonical()`, or an escape. */
  readonly isFirst: Uint8Array;
  /** By state: how many bytes of a text have matched. The start state is 0, with depth 0. */
  readonly depth: Int32Array;
  /** By state: the length of the longest text that ends there; 0 when none does. Without remainders. */
  readonly ends: Int32Array;
  /** The longest remainder that ends at the state. */
  remainderAt(state: number): Remainder | undefined;
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
export function createAutomaton(texts: readonly Uint8Array[], remainders: readonly Remainder[] = []): Automaton {
  const all = [...texts, ...remainders.map(({ text }) => text)];
  const most = all.reduce((sum, { length }) => sum + length + 1, 1);
  const [child, sibling, fail, depth, ends] = [0, 0, 0, 0, 0].map(() => new Int32Array(most)) as FiveLists;
  const label = new Uint8Array(most);
  const first = new Int32Array(256);
  const remaindersAt = new Map<number, Remainder>();
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
    if (remainders.length === 0) return;
    const remainder = remaindersAt.get(state) ?? remaindersAt.get(fail[state] as number);
    if (remainder !== undefined) remaindersAt.set(state, remainder);
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
  for (const [index, text] of all.entries()) {
    const end = add(text, free);
    if (end >= free) free = end + 2;
    const remainder = remainders[index - texts.length];
    if (remainder === undefined) ends[end] = text.length;
    else if (remainder.minBytes < (remaindersAt.get(end)?.minBytes ?? Infinity)) remaindersAt.set(end, remainder);
  }
  return {
    hasLineBreak: all.some((text) => text.includes(LF) || text.includes(CR)),
    longest: Math.max(0, ...all.map(({ length }) => length)),
    isFirst: Uint8Array.from(first, (_, byte) => Number(isLead(byte) || first[canonical(byte)] !== 0)),
    depth,
    ends,
    // A lookup for each byte would take longer than the rest.
    remainderAt: remainders.length === 0 ? () => undefined : (state) => remaindersAt.get(state),
    next,
    follow,
    looks: () => looked,
  };
}

/** A place in the automaton, and where the last bytes that led there were written. */
export class Track {
  state = 0;
  readonly #automaton: Automaton;
  /** A ring buffer. */
  readonly #starts: Float64Array;
  #taken = 0;

  constructor(automaton: Automaton) {
    this.#automaton = automaton;
    this.#starts = new Float64Array(2 ** Math.ceil(Math.log2(automaton.longest + 1)));
  }

  /** Reads a byte, after `canonical()`, that was written at `start`. */
  take(letter: number, start: number): void {
    this.state = this.#automaton.next(this.state, letter);
    this.#starts[this.#taken++ & (this.#starts.length - 1)] = start;
  }

  /** Where the last `length` bytes begin. */
  startOf(length: number): number {
    return this.#starts[(this.#taken - length) & (this.#starts.length - 1)] as number;
  }

  /** Where the text in progress begins; `end` when there is none. */
  begunAt(end: number): number {
    return this.state === 0 ? end : this.startOf(this.#automaton.depth[this.state] as number);
  }
}

export const LF = 0x0a;
export const CR = 0x0d;

/** Label of the slot after the last state of a text: `-`, which `canonical()` never returns. */
const NO_LETTER = 0x2d;

type FiveLists = [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
