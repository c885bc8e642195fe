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
 * Makes the automaton of texts. Each byte of a text is a state, with a list of those that may follow: a state has one, or
 * two where texts part, but for the first, which has a table.
 */
export function createAutomaton(texts: readonly Uint8Array[]): Automaton {
  const most = texts.reduce((sum, { length }) => sum + length, 1);
  const [child, sibling, fail, depth, ends] = [0, 0, 0, 0, 0].map(() => new Int32Array(most)) as FiveLists;
  const label = new Uint8Array(most);
  const first = new Int32Array(256);
  let count = 1;
  let looked = 0;

  function follow(state: number, byte: number): number {
    looked++;
    if (state === 0) return first[byte] ?? 0;
    let at = child[state] as number;
    while (at !== 0 && label[at] !== byte) at = sibling[at] as number;
    return at;
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

  function added(state: number, byte: number): number {
    const to = count++;
    label[to] = byte;
    depth[to] = (depth[state] as number) + 1;
    if (state === 0) first[byte] = to;
    else {
      sibling[to] = child[state] as number;
      child[state] = to;
    }
    return to;
  }

  for (const text of texts) {
    let state = 0;
    for (const byte of text) state = follow(state, byte) || added(state, byte);
    ends[state] = text.length;
  }
  // In order of their depth: where a state falls back to is always known before it.
  const begun = first.filter((state) => state !== 0);
  const queue = new Int32Array(count);
  queue.set(begun);
  for (let at = 0, known = begun.length; at < known; at++) {
    const state = queue[at] as number;
    for (let to = child[state] as number; to !== 0; to = sibling[to] as number) {
      fail[to] = next(fail[state] as number, label[to] as number);
      ends[to] ||= ends[fail[to] as number] as number;
      queue[known++] = to;
    }
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

type FiveLists = [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
