import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";

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
interface LookupCacheOptions<Value> {
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
  const rereader = createRereader(entries, { findByIds, now });
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

/**
 * Reads together what is asked for in one turn of the event loop: most of what a statement costs this process is the same
 * for one row and for ten.
 *
 * @param readAll gives the values in the order of the keys.
 */
export function createBatch<Key, Value>(
  readAll: (keys: Key[]) => Promise<ReadonlyArray<Value | undefined>>,
): (key: Key) => Promise<Value | undefined> {
  let keys: Key[] = [];
  let reading: Promise<ReadonlyArray<Value | undefined>> | undefined;
  return (key) => {
    const at = keys.push(key) - 1;
    reading ??= nextTurn().then(() => {
      const asked = keys;
      keys = [];
      reading = undefined;
      return readAll(asked);
    });
    return reading.then((values) => values[at]);
  };
}

/** A value that is kept, with its last reading. */
class Entry<Value> {
  /** When the last reading was sent, in milliseconds. */
  askedAt: number;
  value: Promise<Value | undefined>;
  /** What `value` was settled with; undefined while it is being read for the first time. */
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

/** How often entries are looked through, in milliseconds. */
const ROUND_MS = 200;
/** From this part of the greatest age on an entry is read again: there are two rounds in which it still comes in time. */
const DUE_AT = 0.6;
/** Of one statement: its answer holds the event loop for two or three milliseconds. */
const MAX_BATCH = 250;

/**
 * Looks after the entries of a cache: those that were used since they were read are read again, many in one statement,
 * and whoever asks meanwhile gets what is kept. What is not used grows old, and where nothing else is left the rounds
 * end. A reading that fails or comes late changes nothing: what grew too old is then read by whoever asks for it.
 */
function createRereader<Value extends { readonly id: string }>(
  entries: Map<string, Entry<Value>>,
  { findByIds, now }: Required<LookupCacheOptions<Value>>,
): { begin(): void; close(): void } {
  let timer: NodeJS.Timeout | undefined;
  let isRunning = false;
  let isClosed = false;

  function begin(): void {
    if (isRunning || isClosed) return;
    isRunning = true;
    timer = setTimeout(() => void round(), ROUND_MS).unref();
  }

  async function round(): Promise<void> {
    const due = dueOf(entries, now());
    try {
      for (let at = 0; at < due.length && !isClosed; at += MAX_BATCH) await reread(due.slice(at, at + MAX_BATCH));
    } catch {
      // Callers who need the database are told by their own reading; the next round tries again what is still used.
    }
    isRunning = false;
    if (isAnyFresh(entries, now() - MAX_STALE_MS)) begin();
  }

  async function reread(batch: readonly Keyed<Value>[]): Promise<void> {
    for (const [, entry] of batch) entry.isUsed = false;
    // Counted from before they are read, as that of a single one is.
    const askedAt = now();
    const values = await findByIds(batch.flatMap(([, { known }]) => known?.id ?? []));
    const byId = new Map(values.map((value) => [value.id, value]));
    for (const [key, entry] of batch) {
      // Changed by this process, or read by a caller, since this was sent: that is the newer one.
      if (entries.get(key) !== entry) continue;
      entries.delete(key);
      const value = byId.get(entry.known?.id ?? "");
      if (value === undefined) continue;
      entry.refresh(askedAt, value);
      entries.set(key, entry);
    }
  }

  return {
    begin,
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

type Keyed<Value> = readonly [key: string, entry: Entry<Value>];

function dueOf<Value>(entries: Iterable<Keyed<Value>>, now: number): Keyed<Value>[] {
  const due: Keyed<Value>[] = [];
  for (const keyed of entries) {
    const { isUsed, known, askedAt } = keyed[1];
    const ageMs = now - askedAt;
    if (isUsed && known !== undefined && ageMs >= MAX_STALE_MS * DUE_AT && ageMs < MAX_STALE_MS) due.push(keyed);
  }
  return due;
}

function isAnyFresh(entries: ReadonlyMap<string, Entry<unknown>>, since: number): boolean {
  for (const { askedAt } of entries.values()) if (askedAt > since) return true;
  return false;
}
