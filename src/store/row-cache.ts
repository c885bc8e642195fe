import type Database from "better-sqlite3";

/**
 * Hears of each read and write of the database, with the wait for it; of those that found their row kept in memory, nothing.
 *
 * @param ms how long it took.
 */
export type OnOperation = (operation: "read" | "write", ms: number, isFailed: boolean) => void;

/** Rows of one kind that were read more than once, each until something may have changed it. */
export interface RowCache<Row> {
  /** The row of this key as it is now: the one that is kept, or what `read` finds. */
  find(key: string, read: () => Row | undefined): Row | undefined;
  /** This process has changed the row. */
  forget(key: string): void;
}

/** The caches of one database. */
export interface RowCaches {
  /** @param maxRows the row kept longest makes room; and so many keys are remembered whose row was read once. */
  create<Row>(maxRows: number): RowCache<Row>;
  /** This process has changed rows of any kind. */
  forgetAll(): void;
}

/**
 * Keeps rows that nothing has changed. A write of this process says itself what it changes. One of another process
 * changes SQLite's `data_version`, which is read before a kept row is given out, once in a turn of the event loop: all
 * rows that are asked for in one turn are of the same moment.
 *
 * Reading the version takes a lock and so costs a third of reading a row; a row in the hand also saves whoever keeps
 * something with it, such as an opened token, from making it again.
 *
 * Of a row that is read for the first time only its key is kept. Where there are far more users than rows may be kept
 * most are not asked for again: rows of theirs would push out those that are, and grow old before they are dropped,
 * which costs the garbage collector as much as reading them.
 */
export function createRowCaches(db: Database.Database, onOperation: OnOperation = () => {}): RowCaches {
  const dataVersion = db.prepare<[], number>("PRAGMA data_version").pluck();
  const caches: Array<Map<string, unknown>> = [];
  let seen: number | undefined;
  let isCurrent = false;
  const endTurn = () => {
    isCurrent = false;
  };

  function forgetAll(): void {
    for (const rows of caches) rows.clear();
  }

  function requireCurrent(): void {
    if (isCurrent && db.open) return;
    const version = dataVersion.get();
    if (version !== seen) forgetAll();
    seen = version;
    isCurrent = true;
    setImmediate(endTurn);
  }

  return {
    forgetAll,
    create<Row>(maxRows: number): RowCache<Row> {
      const rows = new Map<string, Row>();
      const met = new Set<string>();
      caches.push(rows);
      return {
        find(key, read) {
          requireCurrent();
          const kept = rows.get(key);
          if (kept !== undefined) return kept;
          const startedAt = performance.now();
          const row = read();
          onOperation("read", performance.now() - startedAt, false);
          if (row === undefined) return undefined;
          if (isMetAgain(met, key, maxRows)) keep(rows, key, row, maxRows);
          return row;
        },
        forget: (key) => void rows.delete(key),
      };
    },
  };
}

function isMetAgain(met: Set<string>, key: string, maxKeys: number): boolean {
  const isKnown = met.delete(key);
  met.add(key);
  if (met.size > maxKeys) met.delete(met.keys().next().value as string);
  return isKnown;
}

function keep<Row>(rows: Map<string, Row>, key: string, row: Row, maxRows: number): void {
  if (rows.size >= maxRows) rows.delete(rows.keys().next().value as string);
  rows.set(key, row);
}
