import type Database from "better-sqlite3";
import { createCallsFile } from "./calls-file.js";
import { countInSlices } from "./count-connections.js";
import { identityOf, openDatabase } from "./open-database.js";
import type { OnOperation } from "./row-cache.js";
import { createFileGuard, createPagesCheck, createWriteCheck } from "./sqlite-checks.js";
import { createSqliteDatabase } from "./sqlite-driver.js";
import { createTables, type Store } from "./store.js";
import { type OnHealth, type StoreHealth, UNWATCHED, watchStore } from "./store-health.js";

/** The store in one SQLite file. Several processes of one machine may share it. */
export interface SqliteStore extends Store {
  close(): void;
}

/** What the store does not need. */
export interface SqliteStoreOptions {
  /** Milliseconds since the epoch; tests replace it. */
  readonly now?: () => number;
  readonly onOperation?: OnOperation | undefined;
  /** Hears where a damaged file of call records was moved to. */
  readonly onDamagedCalls?: ((aside: string) => void) | undefined;
  readonly onHealth?: OnHealth | undefined;
}

/** Opens the store, creating it when there is none. Throws StoreOpenError when the relay cannot start with this file. */
export function openSqliteStore(
  path: string,
  { now = Date.now, onOperation: tell = () => {}, onDamagedCalls = () => {}, onHealth }: SqliteStoreOptions = {},
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
  const tables = createTables(database, { calls, health });
  return {
    ...tables,
    id: identityOf(db),
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
