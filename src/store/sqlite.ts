import { realpathSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { RelayError } from "../model/errors.js";
import { createCallsFile } from "./calls-file.js";
import { openDatabase, storeIdOf } from "./open-database.js";
import { createSqliteDatabase, type OnOperation } from "./sqlite-driver.js";
import { identityOf, isBusy, storeErrorFrom } from "./sqlite-error.js";
import { createTables, type Store, type StoreOptions } from "./store.js";
import {
  countInSlices,
  type OnHealth,
  type StoreCheck,
  type StoreHealth,
  UNWATCHED,
  watchStore,
} from "./store-health.js";

/** The store in one SQLite file. Several processes of one machine may share it. */
export interface SqliteStore extends Store {
  close(): void;
}

/** Opens the store, creating it when there is none. Throws StoreOpenError when the relay cannot start with this file. */
export function openSqliteStore(
  path: string,
  { now = Date.now, onOperation: tell = () => {}, onDamagedCalls = () => {}, onHealth }: StoreOptions = {},
): SqliteStore {
  const db = openDatabase(path);
  const requireInPlace = createFileGuard(path);
  const health = onHealth === undefined ? UNWATCHED : watchFile(db, path, requireInPlace, onHealth);
  const onOperation: OnOperation = (kind, ms, isFailed) => {
    tell(kind, ms, isFailed);
    if (isFailed) health.suspect();
  };
  const database = createSqliteDatabase(db, { now, onOperation, requireInPlace });
  // Counts are not told of as reads, among which they would hide those that calls wait for.
  const quiet = createSqliteDatabase(db);
  const isApplication = db.prepare<[string]>("SELECT 1 FROM applications WHERE id = ?");
  const calls = createCallsFile(path, {
    exists: (id) => isApplication.get(id) !== undefined,
    onDamaged: onDamagedCalls,
  });
  const tables = createTables(database, { calls, figures: calls.figures, health });
  return {
    ...tables,
    id: storeIdOf(db),
    countConnections: () => countInSlices(quiet),
    async ready() {
      requireInPlace();
      await tables.ready();
    },
    close() {
      health.close();
      calls.close();
      db.close();
    },
  };
}

function watchFile(db: Database.Database, path: string, requireInPlace: () => void, onHealth: OnHealth): StoreHealth {
  const pages = createPagesCheck(path);
  const file = { look: requireInPlace, everyMs: 1000, retryMs: 1000 };
  const health = watchStore({ file, write: createWriteCheck(db, requireInPlace), pages }, onHealth);
  return {
    ...health,
    close() {
      health.close();
      pages.close();
    },
  };
}

const REPLACED =
  "The relay's database file was moved, deleted or replaced while the relay runs. Nothing is written any more: the operator must put the files back, or stop the relay before other files take their place.";
const LOCKED = "The relay's store is locked by another process. Try again.";

/** A transaction of another process is over by then, in milliseconds. */
const MAX_BUSY_MS = 2000;
/**
 * Pages are read for so long in one turn of the event loop, with a pause before the next: a thirtieth of a core, where
 * a tenth was 9 % of the CPU of a relay whose store has a million connections. Milliseconds.
 */
const SLICE_MS = 1;
const PAUSE_MS = 30;

/**
 * Remembers which files a connection has open; the function throws STORE_UNAVAILABLE when their names lead to others, or
 * to none. What is written then goes into files without a name, and is gone when the process ends.
 *
 * Costs three `stat()` calls, some microseconds where a commit takes a millisecond.
 */
function createFileGuard(path: string): () => void {
  // SQLite puts them beside the file that a link leads to.
  const real = realpathSync(path);
  const opened = [path, `${real}-wal`, `${real}-shm`].map((name) => [name, identityOf(name)] as const);
  return () => {
    for (const [name, identity] of opened) {
      if (identity !== undefined && identityOf(name) !== identity) throw new RelayError("STORE_UNAVAILABLE", REPLACED);
    }
  };
}

/**
 * Writes a page and waits for the disk, changing nothing: the header gets the value that it has.
 * The event loop does not wait for the lock of another process: that is tried again.
 */
function createWriteCheck(db: Database.Database, requireInPlace: () => void): StoreCheck {
  const busyTimeoutMs = db.pragma("busy_timeout", { simple: true });
  const write = db.transaction(() => {
    requireInPlace();
    db.pragma(`application_id = ${db.pragma("application_id", { simple: true })}`);
  });
  const isWritten = () => {
    // Look-ups of this turn of the event loop read on in theirs.
    if (db.inTransaction) return false;
    try {
      db.pragma("busy_timeout = 0");
      write.immediate();
      return true;
    } catch (error) {
      if (isBusy(error)) return false;
      throw storeErrorFrom(error, db.open);
    } finally {
      if (db.open) db.pragma(`busy_timeout = ${busyTimeoutMs}`);
    }
  };
  const look = async () => {
    for (const until = performance.now() + MAX_BUSY_MS; !isWritten(); await delay(50)) {
      if (performance.now() > until) throw new RelayError("STORE_UNAVAILABLE", LOCKED);
    }
  };
  return { look, everyMs: 10_000, retryMs: 1000 };
}

/** A walk over pages, which ends when it is asked to. */
interface PageWalk extends StoreCheck {
  close(): void;
}

/** Reads every page that holds something, on a connection of its own, whose cache has none of them. */
function createPagesCheck(file: string): PageWalk {
  let walk: Walk | undefined;
  return {
    everyMs: 60_000,
    retryMs: 5000,
    // Most of the time of a look is its pauses.
    maxShare: 0.3,
    async look() {
      walk = openWalk(file);
      try {
        await walkOn(walk, Number.POSITIVE_INFINITY, PAUSE_MS);
      } finally {
        walk.close();
      }
    },
    close: () => walk?.close(),
  };
}

/**
 * Reads every page for as long as it may. Resolves to whether it came to the end. Rejects with STORE_UNAVAILABLE when a
 * page is damaged or cannot be read.
 */
export async function readPages(file: string, maxMs: number): Promise<boolean> {
  const walk = openWalk(file);
  try {
    return await walkOn(walk, maxMs, 0);
  } finally {
    walk.close();
  }
}

interface Walk {
  /** Reads for a moment; whether there is more. */
  step(): boolean;
  close(): void;
}

async function walkOn(walk: Walk, maxMs: number, pauseMs: number): Promise<boolean> {
  for (const until = performance.now() + maxMs; walk.step(); await delay(pauseMs)) {
    if (performance.now() > until) return false;
  }
  return true;
}

/** `quick_check` cannot be interrupted; a walk over `dbstat` reads and decodes the same pages one by one. */
function openWalk(file: string): Walk {
  // Not readonly: the last such connection would leave a log behind that it may not delete.
  const db = new Database(file, { fileMustExist: true });
  db.pragma("query_only = ON");
  const pages = db.prepare<[], string>("SELECT pagetype FROM dbstat").pluck().iterate();
  let isOpen = true;
  return {
    step() {
      for (const until = performance.now() + SLICE_MS; isOpen && performance.now() < until; ) {
        const { value, done } = nextOf(pages);
        if (done) return false;
        if (value === "corrupted")
          throw storeErrorFrom(new Database.SqliteError("damaged page", "SQLITE_CORRUPT"), true);
      }
      return isOpen;
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      pages.return?.();
      db.close();
    },
  };
}

function nextOf(pages: IterableIterator<string>): IteratorResult<string> {
  try {
    return pages.next();
  } catch (error) {
    // Nobody writes to what a reader sees; only a recovery keeps it out, for a moment.
    if (isBusy(error)) return { value: undefined, done: true };
    throw storeErrorFrom(error, true);
  }
}
