import { canonical, isLead } from "./unescape.js";

/** Finds any of some texts in one pass (Aho and Corasick, https://doi.org/10.1145/360825.360855). */
export interface Automaton {
  /** Of the longest text. */
  readonly longest: number;
  /** 1 for a byte with which a text begins, as `Reading` reads it, or an escape. */
  readonly isFirst: Uint8Array;
  /** How many bytes of a text have been read in a state; 0 in the state 0, in which none has. */
  readonly depth: Int32Array;
  /** The length of the longest text that ends in a state; 0 when none does. */
  readonly ends: Int32Array;
  /** The state behind one more byte: the longest beginning of a text that what was read ends with. */
  next(state: number, byte: number): number;
  /** The state behind one more byte of the same text; 0 when it does not go on so. */
  follow(state: number, byte: number): number;
  /** How often a state was looked at so far: a measure of the work, which is linear in what is read. */
  looks(): number;
}

/**
 * Makes the automaton of texts. Each byte of a text is a state, with the one behind it as the next state, but for the first
 * bytes that an earlier text begins with, too.
 *
 * Where a state falls back to is found out when it is first reached. A token of 16 KiB has 150,000 states: all of them at
 * once would hold up everybody else, and most are never reached.
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

  /** What it falls back to is less deep, so it may be in another text, but never in all of them in turn. */
  function reach(state: number, parent: number): void {
    depth[state] = (depth[parent] as number) + 1;
    if (parent !== 0) fail[state] = next(fail[parent] as number, label[state] as number);
    ends[state] ||= ends[fail[state] as number] as number;
  }

  /** Gives back where the states of the next text begin. */
  function add(text: Uint8Array, from: number): number {
    let state = 0;
    let shared = 0;
    for (; shared < text.length; shared++) {
      const to = childOf(state, text[shared] as number);
      if (to === 0) break;
      state = to;
    }
    if (shared === text.length) {
      ends[state] = text.length;
      return from;
    }
    if (state === 0) first[text[0] as number] = from;
    else {
      sibling[from] = child[state] as number;
      child[state] = from;
    }
    label.set(text.subarray(shared), from);
    const end = from + text.length - shared;
    label[end] = NO_LETTER;
    ends[end - 1] = text.length;
    return end + 1;
  }

  texts.reduce((from, text) => add(text, from), 1);
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

/** Behind the last state of a text: one that `canonical()` makes another of. */
const NO_LETTER = 0x2d;

type FiveLists = [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
