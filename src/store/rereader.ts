/** A value that is kept, as far as reading it again goes. */
export interface Rereadable<Value> {
  /** When the last reading was sent, in milliseconds. */
  readonly askedAt: number;
  /** Undefined while it is being read for the first time. */
  readonly known: Value | undefined;
  isUsed: boolean;
  refresh(askedAt: number, value: Value): void;
}

/** Reads what is in use before it is too old. */
export interface Rereader {
  /** There is something to look after. */
  begin(): void;
  /** Begins no reading any more. */
  close(): void;
}

interface RereaderOptions<Value> {
  readonly findByIds: (ids: readonly string[]) => Promise<readonly Value[]>;
  readonly now: () => number;
  /** Of an age that is not given out any more. */
  readonly maxStaleMs: number;
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
export function createRereader<Value extends { readonly id: string }>(
  entries: Map<string, Rereadable<Value>>,
  { findByIds, now, maxStaleMs }: RereaderOptions<Value>,
): Rereader {
  let timer: NodeJS.Timeout | undefined;
  let isRunning = false;
  let isClosed = false;

  function begin(): void {
    if (isRunning || isClosed) return;
    isRunning = true;
    timer = setTimeout(() => void round(), ROUND_MS).unref();
  }

  async function round(): Promise<void> {
    const due = dueOf(entries, now(), maxStaleMs);
    try {
      for (let at = 0; at < due.length && !isClosed; at += MAX_BATCH) await reread(due.slice(at, at + MAX_BATCH));
    } catch {
      // Callers who need the database are told by their own reading; the next round tries again what is still used.
    }
    isRunning = false;
    if (isAnyFresh(entries, now() - maxStaleMs)) begin();
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

type Keyed<Value> = readonly [key: string, entry: Rereadable<Value>];

function dueOf<Value>(entries: Iterable<Keyed<Value>>, now: number, maxStaleMs: number): Keyed<Value>[] {
  const due: Keyed<Value>[] = [];
  for (const keyed of entries) {
    const { isUsed, known, askedAt } = keyed[1];
    const ageMs = now - askedAt;
    if (isUsed && known !== undefined && ageMs >= maxStaleMs * DUE_AT && ageMs < maxStaleMs) due.push(keyed);
  }
  return due;
}

function isAnyFresh(entries: ReadonlyMap<string, Rereadable<unknown>>, since: number): boolean {
  for (const { askedAt } of entries.values()) if (askedAt > since) return true;
  return false;
}
