import { isDeepStrictEqual } from "node:util";
import { createRereader } from "./rereader.js";

/** How late a change of another process may be seen, in milliseconds: after a disconnect, calls end within that. */
const MAX_STALE_MS = 1000;
/** Of each kind; a connection with its sealed tokens takes some kilobytes. */
const MAX_ENTRIES = 5000;

/** Values that were read a moment ago. */
export interface LookupCache<Value> {
  /**
   * The value of this key as it was at most a second ago, or what `read` finds. Whoever asks while it is being read
   * gets the same answer; that there is none is not kept. A value that has not changed is the same object again, so that
   * whoever keeps something with it, such as an opened token, need not make that again.
   */
  find(key: string, read: () => Promise<Value | undefined>): Promise<Value | undefined>;
  /** This process has changed it, or is about to: what is being read now is not kept either. */
  forget(key: string): void;
  forgetAll(): void;
  /** Begins no reading of its own any more. */
  close(): void;
}

/** What a cache needs. */
export interface LookupCacheOptions<Value> {
  /** The values with these ids, in any order, without those that are gone. */
  readonly findByIds: (ids: readonly string[]) => Promise<readonly Value[]>;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

/**
 * What is asked for again and again is read in the background before it is too old, many values at once: so calls
 * nearly never wait for the database, nor pay for a statement of their own.
 */
export function createLookupCache<Value extends { readonly id: string }>({
  findByIds,
  now = () => performance.now(),
}: LookupCacheOptions<Value>): LookupCache<Value> {
  const entries = new Map<string, Entry<Value>>();
  const rereader = createRereader(entries, { findByIds, now, maxStaleMs: MAX_STALE_MS });
  return {
    find(key, read) {
      const kept = entries.get(key);
      if (kept !== undefined && now() - kept.askedAt < MAX_STALE_MS) {
        kept.isUsed = true;
        return kept.value;
      }
      // Counted from before it was read: the answer is at least as new as that.
      const entry = new Entry(now(), kept?.known, read());
      const drop = () => void (entries.get(key) === entry && entries.delete(key));
      entry.value.then((value) => value === undefined && drop(), drop);
      entries.delete(key);
      entries.set(key, entry);
      const [oldest] = entries.keys();
      if (entries.size > MAX_ENTRIES && oldest !== undefined) entries.delete(oldest);
      rereader.begin();
      return entry.value;
    },
    forget: (key) => void entries.delete(key),
    forgetAll: () => entries.clear(),
    close: rereader.close,
  };
}

/** A value that is kept, with its last reading. */
class Entry<Value> {
  askedAt: number;
  value: Promise<Value | undefined>;
  /** What `value` was settled with, once it is. */
  known: Value | undefined;
  /** Whether anybody has asked for it since it was read. */
  isUsed = false;

  constructor(askedAt: number, before: Value | undefined, read: Promise<Value | undefined>) {
    this.askedAt = askedAt;
    this.known = undefined;
    this.value = read.then((value) => {
      this.known = sameOf(before, value);
      return this.known;
    });
  }

  /** It was read again. */
  refresh(askedAt: number, value: Value): void {
    const known = sameOf(this.known, value);
    if (known !== this.known) this.value = Promise.resolve(known);
    this.known = known;
    this.askedAt = askedAt;
  }
}

function sameOf<Value>(before: Value | undefined, value: Value | undefined): Value | undefined {
  return isDeepStrictEqual(before, value) ? before : value;
}
