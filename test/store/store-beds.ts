import { type PostgresLocation, parseDatabaseLocation } from "../../src/config/database-location.js";
import { openPostgresStore } from "../../src/store/postgres.js";
import { openSqliteStore } from "../../src/store/sqlite.js";
import type { Store, StoreOptions } from "../../src/store/store.js";
import { createTestDatabase, POSTGRES_URL } from "../support/postgres.js";
import { createStoreFolder, NOW } from "./store-for-test.js";

/** A database of its own, whichever it is: what every store must do is tested on each of them. */
export interface StoreBed {
  /** Opens the store; closed with the bed at the latest. */
  open(options?: StoreOptions): Promise<Store>;
  /** Changes the database behind the stores' back. Parameters are `?`. */
  run(sql: string, ...values: unknown[]): Promise<void>;
  rows(sql: string, ...values: unknown[]): Promise<Record<string, unknown>[]>;
  /** Lets leases and waits be older. */
  elapse(ms: number): Promise<void>;
  /** Everything that is stored; stores must be closed. */
  contents(): Promise<unknown>;
  remove(): Promise<void>;
}

/** Every kind of store that can be had here. */
export const STORES: ReadonlyArray<{ readonly name: string; readonly createBed: () => Promise<StoreBed> }> = [
  { name: "SQLite", createBed: createSqliteBed },
  ...(POSTGRES_URL === undefined ? [] : [{ name: "PostgreSQL", createBed: createPostgresBed }]),
];

async function createSqliteBed(): Promise<StoreBed> {
  const at = createStoreFolder();
  let elapsedMs = 0;
  const closers: Array<() => void> = [];
  return {
    async open(options) {
      const store = openSqliteStore(at.path, { now: () => NOW + elapsedMs, ...options });
      closers.push(() => store.close());
      return store;
    },
    run: async (sql, ...values) => at.change((db) => void db.prepare(sql).run(...values)),
    rows: async (sql, ...values) =>
      at
        .raw()
        .prepare(sql)
        .all(...values) as Record<string, unknown>[],
    async elapse(ms) {
      elapsedMs += ms;
    },
    // As text: it takes the comparison a second to walk over the bytes of a file.
    contents: async () => [...at.files()].map(([name, bytes]) => [name, bytes.toString("latin1")]),
    async remove() {
      for (const close of closers) close();
      at.remove();
    },
  };
}

async function createPostgresBed(): Promise<StoreBed> {
  const database = await createTestDatabase();
  const location = parseDatabaseLocation(database.url) as PostgresLocation;
  const closers: Array<() => Promise<void>> = [];
  const query = (sql: string, values: readonly unknown[]) => database.query(numbered(sql), values);
  return {
    async open(options) {
      const limits = { maxConnections: 4, timeoutMs: 30_000 };
      const store = await openPostgresStore(location, limits, { now: () => NOW, ...options });
      let closing: Promise<void> | undefined;
      const close = () => {
        closing ??= store.close();
        return closing;
      };
      closers.push(close);
      return { ...store, close };
    },
    run: async (sql, ...values) => void (await query(sql, values)),
    rows: (sql, ...values) => query(sql, values),
    async elapse(ms) {
      for (const column of ["lease_until", "next_try_at"]) {
        await query(`UPDATE connections SET ${column} = ${column} - ?::bigint`, [ms]);
      }
    },
    contents: () => contentsOf(query),
    async remove() {
      for (const close of closers) await close();
      await database.remove();
    },
  };
}

async function contentsOf(query: (sql: string, values: unknown[]) => Promise<Record<string, unknown>[]>) {
  const tables = await query(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
    [],
  );
  const names = tables.map((row) => String(row["table_name"])).sort();
  return Promise.all(names.map(async (name) => [name, await query(`SELECT * FROM ${name} ORDER BY 1`, [])]));
}

function numbered(sql: string): string {
  let count = 0;
  return sql.replaceAll("?", () => `$${++count}`);
}
