import { setTimeout as delay } from "node:timers/promises";
import type Sqlite from "better-sqlite3";
import { keepNewest } from "../lib/keep-newest.js";
import {
  type CacheOptions,
  camelCase,
  createRowBuilder,
  type Database,
  type Operation,
  type Query,
  type Statement,
} from "./database.js";
import { isBusy, storeErrorFrom } from "./sqlite-error.js";

/** Options of a SQLite database. */
interface SqliteDatabaseOptions {
  /** Milliseconds since the epoch; also the clock of leases and waits. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
  readonly onOperation?: OnOperation | undefined;
  /** Throws when the path no longer leads to the open file, so that writes would be lost. */
  readonly requireInPlace?: (() => void) | undefined;
}

/**
 * Creates a database that runs operations on a SQLite file, each synchronously. It tries at once, and retries a few times
 * after short pauses while another process holds the lock (threats A04). A write takes the write lock at its start
 * (threats A05).
 */
export function createSqliteDatabase(
  db: Sqlite.Database,
  { now = Date.now, onOperation = () => {}, requireInPlace = () => {} }: SqliteDatabaseOptions = {},
): Database {
  const caches = createRowCaches(db, onOperation);
  const answer = createAnswer(db, now);
  const transaction = db.transaction((operation: () => unknown) => operation());
  const timed = async <T>(kind: "read" | "write", run: () => T): Promise<T> => {
    const startedAt = performance.now();
    let isFailed = true;
    try {
      const value = await attempt(db, run);
      isFailed = false;
      return value;
    } finally {
      onOperation(kind, performance.now() - startedAt, isFailed);
    }
  };
  return {
    now,
    read(operation) {
      return timed("read", () => {
        caches.endTurn();
        return complete(operation(), answer);
      });
    },
    write<T>(operation: () => Operation<T>, forget = caches.forgetAll) {
      return timed("write", () => {
        requireInPlace();
        caches.endTurn();
        const result = transaction.immediate(() => complete(operation(), answer)) as T;
        forget();
        // The file may have been replaced during the write.
        requireInPlace();
        return result;
      });
    },
    createCache<Key, Value>({ maxRows, textOf, find: read }: CacheOptions<Key, Value>) {
      const rows = caches.create<Value>(maxRows);
      const find = async (key: Key) => {
        const look = () => rows.find(textOf(key), () => complete(read(key), answer));
        // The row cache itself reports the reads that succeed at once.
        try {
          return look();
        } catch {
          return timed("read", look);
        }
      };
      const forget = (key: Key) => rows.forget(textOf(key));
      // The cache checks the file's data version, so no change is seen late.
      return { find, lookUp: find, forget, forgetFound: forget };
    },
  };
}

function complete<T>(operation: Operation<T>, answer: (query: Query) => unknown): T {
  let step = operation.next();
  while (!step.done) {
    let value: unknown;
    try {
      value = answer(step.value);
    } catch (error) {
      step = operation.throw(error);
      continue;
    }
    step = operation.next(value);
  }
  return step.value;
}

interface Prepared {
  readonly statement: Sqlite.Statement<unknown[], unknown>;
  readonly hasClock: boolean;
  readonly rowFrom: ReturnType<typeof createRowBuilder>;
}

/** Prepares each statement once, at its first use: a look-up takes 46 µs of CPU, and 109 if prepared each time. */
function createAnswer(db: Sqlite.Database, now: () => number): (query: Query) => unknown {
  const prepared = new Map<Statement<never, never>, Prepared>();
  return ({ kind, statement: asked, parameters }) => {
    const known = prepared.get(asked) ?? prepare(db, asked);
    prepared.set(asked, known);
    const { statement, hasClock, rowFrom } = known;
    // The clock has one value throughout a statement.
    const values = hasClock ? { ...parameters, clock: now() } : parameters;
    if (kind === "run") return statement.run(values).changes;
    if (kind === "all") return (statement.all(values) as unknown[][]).map(rowFrom);
    const row = statement.get(values) as unknown[] | undefined;
    return row && rowFrom(row);
  };
}

function prepare(db: Sqlite.Database, { sql }: Statement<never, never>): Prepared {
  const text = sqliteSql(sql);
  const statement = db.prepare<unknown[]>(text);
  const rowFrom = createRowBuilder(statement.reader ? statement.columns().map(({ name }) => name) : []);
  // better-sqlite3 itself would create the names again per row, and objects in V8's slow dictionary mode.
  if (statement.reader) statement.raw();
  return { statement, hasClock: /(?<!:):clock\b/.test(text), rowFrom };
}

function sqliteSql(sql: string): string {
  return sql
    .replaceAll(", :clock AS clock", "")
    .replaceAll(" AS BYTEA)", " AS BLOB)")
    .replaceAll(" AS KEY)", " AS TEXT)")
    .replaceAll(/(?<!:):[a-z_]+/g, camelCase)
    .replaceAll(/ FOR (?:NO KEY UPDATE|KEY SHARE|UPDATE)(?: SKIP LOCKED)?/g, "");
}

/** Pauses before the second, third and fourth try, in milliseconds: the event loop serves other calls meanwhile. */
const WAITS_MS = [10, 25, 50];

async function attempt<T>(db: Sqlite.Database, operation: () => T): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return operation();
    } catch (error) {
      const waitMs = isBusy(error) ? WAITS_MS[tries] : undefined;
      if (waitMs === undefined) throw storeErrorFrom(error, db.open);
      await delay(waitMs);
    }
  }
}

/**
 * Called for each read and write of the database, but not for rows that are cached in memory.
 *
 * @param ms how long it took, including the wait for locks and connections.
 */
export type OnOperation = (operation: "read" | "write", ms: number, isFailed: boolean) => void;

/**
 * Caches rows that were read more than once, until they change. A write of this process drops the rows that it changes. A write of another process
 * changes SQLite's `data_version`, which is read once per turn of the event loop before a cached row is returned: all
 * rows that are looked up in one turn come from the same moment.
 *
 * All file reads of one turn share one transaction, since taking SQLite's lock for each costs as much as reading its
 * row.
 *
 * A cached row takes 13 µs of CPU when each turn looks up one row, since reading the version takes a lock, and 2 µs
 * when a turn looks up ten; an uncached one takes 38 and 27. What is kept with a cached row, such as an opened token,
 * stays valid.
 *
 * On the first read of a row only its key is remembered. With far more users than rows fit, most are not looked up
 * again, and their rows would evict those that are: with half of the calls for 3,000 users and half for 60,000, a
 * look-up takes 40 µs, and 49 without this.
 */
export function createRowCaches(db: Sqlite.Database, onOperation: OnOperation = () => {}) {
  const dataVersion = db.prepare<[], number>("PRAGMA data_version").pluck();
  const caches: Array<Map<string, unknown>> = [];
  let seen: number | undefined;
  let isCurrent = false;
  // Nothing was written, so the transaction ends with ROLLBACK, which cannot fail and leave it open.
  const [begin, rollback] = [db.prepare("BEGIN"), db.prepare("ROLLBACK")];
  /** Ends the snapshot of this turn: later reads see the current file. */
  const endTurn = () => {
    isCurrent = false;
    if (db.inTransaction) rollback.run();
  };

  /** Drops all rows, when this process has changed rows of any kind. */
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
    endTurn,
    /** @param maxRows beyond this, the oldest row is evicted; also the limit for keys whose row was read once. */
    create<Row>(maxRows: number) {
      const rows = new Map<string, Row>();
      const met = new Map<string, undefined>();
      caches.push(rows);
      return {
        /** The current row of this key: the cached one, or what `read` finds. */
        find(key: string, read: () => Row | undefined): Row | undefined {
          requireCurrent();
          const kept = rows.get(key);
          if (kept !== undefined) return kept;
          const startedAt = performance.now();
          if (!db.inTransaction) begin.run();
          const row = read();
          onOperation("read", performance.now() - startedAt, false);
          if (row === undefined) return undefined;
          if (met.has(key)) keepNewest(rows, key, row, maxRows);
          keepNewest(met, key, undefined, maxRows);
          return row;
        },
        /** Drops a row that this process has changed. */
        forget: (key: string) => void rows.delete(key),
      };
    },
  };
}
