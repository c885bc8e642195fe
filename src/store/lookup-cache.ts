import { setImmediate as nextTurn } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { keepNewest } from "../lib/keep-newest.js";

/** How late another process's change may be seen, in milliseconds: after a disconnect, calls end within this time. */
const MAX_STALE_MS = 1000;
/** Most entries per kind; a connection with its sealed tokens takes some kilobytes. */
const MAX_ENTRIES = 5000;

/** A cache of values that were read within the last second. */
export interface LookupCache<Value> {
  /**
   * The value of this key as it was at most a second ago, or what `read` finds. Concurrent callers share one read; a
   * missing value is not cached. An unchanged value is the same object again, so that what is kept with it, such as an
   * opened token, need not be made again.
   */
  find(key: string, read: () => Promise<Value | undefined>): Promise<Value | undefined>;
  /** Drops a value that this process has changed or is about to change; a read in progress is not cached either. */
  forget(key: string): void;
  forgetAll(): void;
  /** Stops the background reads. */
  close(): void;
}

/** What a cache needs. */
interface LookupCacheOptions<Value> {
  /** Reads the values with these ids, in any order, without those that are gone. */
  readonly findByIds: (ids: readonly string[]) => Promise<readonly Value[]>;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

/**
 * Creates a cache that refreshes values in use in the background before they are too old, many per statement. So calls
 * hardly ever wait for the database, or pay for a statement of their own.
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
      // The age counts from before the read, since the value is at least as new as that.
      const entry = new Entry(now(), kept?.known, read());
      const drop = () => void (entries.get(key) === entry && entries.delete(key));
      entry.value.then((value) => value === undefined && drop(), drop);
      keepNewest(entries, key, entry, MAX_ENTRIES);
      rereader.begin();
      return entry.value;
    },
    forget: (key) => void entries.delete(key),
    forgetAll: () => entries.clear(),
    close: rereader.close,
  };
}

/**
 * Batches the reads of one turn of the event loop into one: most of the cost of a statement to this process is the same
 * for one row and for ten.
 *
 * @param readAll resolves to the values in the order of the keys.
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

/** A cached value, with its last read. */
class Entry<Value> {
  /** When the last read was sent, in milliseconds. */
  askedAt: number;
  value: Promise<Value | undefined>;
  /** What `value` resolved to; undefined during the first read. */
  known: Value | undefined;
  /** Whether it was used since it was read. */
  isUsed = false;

  constructor(askedAt: number, before: Value | undefined, read: Promise<Value | undefined>) {
    this.askedAt = askedAt;
    this.known = undefined;
    this.value = read.then((value) => {
      this.known = sameOf(before, value);
      return this.known;
    });
  }

  /** Takes the result of another read. */
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

/** Interval of the rounds over all entries, in milliseconds. */
const ROUND_MS = 200;
/** An entry is read again from this fraction of the maximum age on: that leaves two rounds for it to come in time. */
const DUE_AT = 0.6;
/** Values per statement: its result blocks the event loop for two or three milliseconds. */
const MAX_BATCH = 250;

/**
 * Refreshes the entries of a cache: those that were used since their last read are read again, many in one statement.
 * Meanwhile callers get the cached value. Unused entries grow too old, and the rounds end when no fresh entry is left.
 * If a read fails or is late, the next caller reads the value itself.
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
      // Callers notice the failure by their own reads; the next round retries entries that are still used.
    }
    isRunning = false;
    if (isAnyFresh(entries, now() - MAX_STALE_MS)) begin();
  }

  async function reread(batch: readonly Keyed<Value>[]): Promise<void> {
    for (const [, entry] of batch) entry.isUsed = false;
    // Their age counts from before the read, as for a single one.
    const askedAt = now();
    const values = await findByIds(batch.flatMap(([, { known }]) => known?.id ?? []));
    const byId = new Map(values.map((value) => [value.id, value]));
    for (const [key, entry] of batch) {
      // If this process changed it, or a caller read it, since this was sent, that one is newer.
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
