import { realpathSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";
import { RelayError } from "../model/errors.js";
import { createCallsFile } from "./calls-file.js";
import { openDatabase, storeIdOf } from "./open-database.js";
import { createSqliteDatabase, type OnOperation } from "./sqlite-driver.js";
import { identityOf, isBusy, LOCKED, storeErrorFrom } from "./sqlite-error.js";
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

/** Opens the store; creates it if missing. Throws StoreOpenError when the relay cannot start with this file. */
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
  // Counts are not reported as reads: they would hide the reads that calls wait for.
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
    clock: async () => undefined,
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
  "The relay's database file was moved, deleted or replaced while the relay was running. The relay no longer writes: the operator must put the files back, or stop the relay before putting other files in their place.";

/** How long the write check waits for a lock, in milliseconds: transactions of other processes end sooner. */
const MAX_BUSY_MS = 2000;
/**
 * How long pages are read per turn of the event loop, and the pause before the next, in milliseconds: a thirtieth of a
 * core. A tenth took 9 % of the CPU of a relay whose store has a million connections.
 */
const SLICE_MS = 1;
const PAUSE_MS = 30;

/**
 * Remembers which files a connection has open. The returned function throws STORE_UNAVAILABLE when their paths lead to
 * other files, or to none: writes would then go into files without a name, and be lost when the process ends.
 *
 * Costs three `stat()` calls: some microseconds, compared with a millisecond for a commit.
 */
function createFileGuard(path: string): () => void {
  // SQLite puts WAL and shared memory beside the target of a link.
  const real = realpathSync(path);
  const opened = [path, `${real}-wal`, `${real}-shm`].map((name) => [name, identityOf(name)] as const);
  return () => {
    for (const [name, identity] of opened) {
      if (identity !== undefined && identityOf(name) !== identity) throw new RelayError("STORE_UNAVAILABLE", REPLACED);
    }
  };
}

/**
 * Writes a page and waits for the disk without changing anything: the header gets the value that it already has. Does
 * not block the event loop while another process holds the lock, but retries.
 */
function createWriteCheck(db: Database.Database, requireInPlace: () => void): StoreCheck {
  const busyTimeoutMs = db.pragma("busy_timeout", { simple: true });
  const write = db.transaction(() => {
    requireInPlace();
    db.pragma(`application_id = ${db.pragma("application_id", { simple: true })}`);
  });
  const isWritten = () => {
    // The look-ups of this turn of the event loop have a transaction open.
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

/** Reads every page in use, on a separate connection, whose page cache is empty. Closing it ends the reading. */
function createPagesCheck(file: string) {
  let pages: ReturnType<typeof walkPages> | undefined;
  return {
    everyMs: 60_000,
    retryMs: 5000,
    // A check spends most of its time in pauses.
    maxShare: 0.3,
    async look() {
      pages = walkPages(file);
      for (const _ of pages) await delay(PAUSE_MS);
    },
    close: () => void pages?.return(),
  };
}

/**
 * Reads every page, for at most `maxMs` milliseconds. Resolves to whether it reached the end. Rejects with
 * STORE_UNAVAILABLE when a page is damaged or cannot be read.
 */
export async function readPages(file: string, maxMs: number): Promise<boolean> {
  const until = performance.now() + maxMs;
  for (const _ of walkPages(file)) {
    await delay(0);
    if (performance.now() > until) return false;
  }
  return true;
}

/**
 * Walks over `dbstat`, which reads and decodes the same pages as `quick_check`, but one by one, so it can pause: it
 * yields after each SLICE_MS.
 */
function* walkPages(file: string): Generator<void, void> {
  // Not readonly: if such a connection closes last, it leaves a WAL behind that it may not delete.
  const db = new Database(file, { fileMustExist: true });
  try {
    db.pragma("query_only = ON");
    let until = performance.now() + SLICE_MS;
    for (const type of db.prepare<[], string>("SELECT pagetype FROM dbstat").pluck().iterate()) {
      if (type === "corrupted") throw new Database.SqliteError("damaged page", "SQLITE_CORRUPT");
      if (performance.now() < until) continue;
      yield;
      until = performance.now() + SLICE_MS;
    }
  } catch (error) {
    // In WAL mode writers do not block readers; only a recovery does, for a moment.
    if (!isBusy(error)) throw storeErrorFrom(error, true);
  } finally {
    db.close();
  }
}
