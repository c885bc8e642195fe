import { setTimeout as delay } from "node:timers/promises";
import type Sqlite from "better-sqlite3";
import type { CacheOptions, Database, Operation, Query, Statement } from "./database.js";
import { isBusy, storeErrorFrom } from "./sqlite-error.js";

/** What running operations on a file needs besides. */
interface SqliteDatabaseOptions {
  /** Milliseconds since the epoch; the clock of leases and waits as well. */
  readonly now?: (() => number) | undefined;
  readonly onOperation?: OnOperation | undefined;
  /** Throws when what is written would go into a file that its name does not lead to any more. */
  readonly requireInPlace?: (() => void) | undefined;
}

/** Runs operations on a SQLite file, each without a pause. */
export function createSqliteDatabase(
  db: Sqlite.Database,
  { now = Date.now, onOperation, requireInPlace }: SqliteDatabaseOptions = {},
): Database {
  const caches = createRowCaches(db, onOperation);
  const attempt = createAttempt(db, caches, onOperation, requireInPlace);
  const answer = createAnswer(db, now);
  return {
    now,
    read: (operation) => attempt.read(() => complete(operation(), answer)),
    write: (operation, forget) => attempt.write(() => complete(operation(), answer), forget),
    createCache<Key, Value>({ maxRows, textOf, find: read }: CacheOptions<Key, Value>) {
      const rows = caches.create<Value>(maxRows);
      const find = (key: Key) => attempt.lookUp(() => rows.find(textOf(key), () => complete(read(key), answer)));
      const forget = (key: Key) => rows.forget(textOf(key));
      // The file is read in place: nothing is seen late.
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
  /** Of the columns of its rows. */
  readonly names: readonly string[];
}

/** Each statement is prepared at its first use: a look-up takes 46 µs of CPU, and 109 where it is prepared each time. */
function createAnswer(db: Sqlite.Database, now: () => number): (query: Query) => unknown {
  const prepared = new Map<Statement<never, never>, Prepared>();
  return ({ kind, statement: asked, parameters }) => {
    const known = prepared.get(asked) ?? prepare(db, asked);
    prepared.set(asked, known);
    const { statement, hasClock, names } = known;
    // The clock is the same in all of a statement.
    const values = hasClock ? { ...parameters, clock: now() } : parameters;
    if (kind === "run") return statement.run(values).changes;
    if (kind === "all") return (statement.all(values) as unknown[][]).map((row) => rowFrom(names, row));
    const row = statement.get(values) as unknown[] | undefined;
    return row && rowFrom(names, row);
  };
}

function prepare(db: Sqlite.Database, { sql }: Statement<never, never>): Prepared {
  const text = sqliteSql(sql);
  const statement = db.prepare<unknown[]>(text);
  const names = statement.reader ? statement.columns().map(({ name }) => name) : [];
  if (statement.reader) statement.raw();
  return { statement, hasClock: /(?<!:):clock\b/.test(text), names };
}

/** better-sqlite3 would make the names anew for each row, and rows whose members V8 finds by hashing. */
function rowFrom(names: readonly string[], values: readonly unknown[]): object {
  const row: Record<string, unknown> = {};
  for (let at = 0; at < names.length; at++) row[names[at] as string] = values[at];
  return row;
}

function sqliteSql(sql: string): string {
  return sql
    .replaceAll(", :clock AS clock", "")
    .replaceAll(" AS BYTEA)", " AS BLOB)")
    .replaceAll(" AS KEY)", " AS TEXT)")
    .replaceAll(/ FOR (?:NO KEY )?UPDATE(?: SKIP LOCKED)?/g, "");
}

/** Pauses before the second, third and fourth try, in milliseconds: the event loop serves other calls meanwhile. */
const WAITS_MS = [10, 25, 50];

/** Runs operations on the database; rejects with RelayError STORE_UNAVAILABLE when it cannot be used. */
interface Attempt {
  /** Runs one read. */
  read<T>(operation: () => T): Promise<T>;
  /** Runs one read whose rows may be kept, by caches that tell of those that are not. */
  lookUp<T>(operation: () => T): Promise<T>;
  /**
   * Runs one transaction that takes the write lock at its start (threats A05).
   *
   * @param forget lets go of the rows that it changed, in the moment it is committed; default all that are kept.
   */
  write<T>(operation: () => T, forget?: () => void): Promise<T>;
}

/**
 * Tries at once, and again a few times after short pauses while another process holds the lock (threats A04).
 *
 * @param requireInPlace throws when what is written would go into a file that its name does not lead to any more.
 */
export function createAttempt(
  db: Sqlite.Database,
  { forgetAll, endTurn }: Pick<RowCaches, "forgetAll" | "endTurn">,
  onOperation: OnOperation = () => {},
  requireInPlace: () => void = () => {},
): Attempt {
  const transaction = db.transaction((operation: () => unknown) => operation());
  const timed = <T>(kind: "read" | "write", begin: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const tell = (isFailed: boolean) => onOperation(kind, performance.now() - startedAt, isFailed);
    const result = begin();
    result.then(
      () => tell(false),
      () => tell(true),
    );
    return result;
  };
  return {
    lookUp: (operation) => attempt(operation, (error) => timed("read", () => tryAgain(db, operation, error))),
    read(operation) {
      const run = () => {
        endTurn();
        return operation();
      };
      return timed("read", () => attempt(run, (error) => tryAgain(db, run, error)));
    },
    write(operation, forget = forgetAll) {
      const run = () => {
        requireInPlace();
        endTurn();
        const result = transaction.immediate(operation) as ReturnType<typeof operation>;
        forget();
        // It may have been replaced in between.
        requireInPlace();
        return result;
      };
      return timed("write", () => attempt(run, (error) => tryAgain(db, run, error)));
    },
  };
}

async function attempt<T>(operation: () => T, onFailure: (error: unknown) => Promise<T>): Promise<T> {
  try {
    return operation();
  } catch (error) {
    return onFailure(error);
  }
}

async function tryAgain<T>(db: Sqlite.Database, operation: () => T, failure: unknown): Promise<T> {
  let error = failure;
  for (const waitMs of WAITS_MS) {
    if (!isBusy(error)) break;
    await delay(waitMs);
    try {
      return operation();
    } catch (again) {
      error = again;
    }
  }
  throw storeErrorFrom(error, db.open);
}

/**
 * Called for each read and write of the database, but not for rows that are cached in memory.
 *
 * @param ms how long it took, with the wait for it.
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
  /** What is read from now on is what is in the file now. */
  endTurn(): void;
}

/**
 * Keeps rows that nothing has changed. A write of this process says itself what it changes. One of another process
 * changes SQLite's `data_version`, which is read before a kept row is given out, once in a turn of the event loop: all
 * rows that are asked for in one turn are of the same moment.
 *
 * Those that are read from the file in one turn are read in one transaction: taking SQLite's lock for each costs as much as
 * reading its row.
 *
 * A kept row is given out in 13 µs of CPU where each turn asks for one, since reading the version takes a lock, in 2 where
 * a turn asks for ten, and is read in 38 and 27; whoever keeps something with it, such as an opened token, need not make
 * it again.
 *
 * Of a row that is read for the first time only its key is kept. Where there are far more users than rows may be kept
 * most are not asked for again, and rows of theirs would push out those that are: with half of the calls for 3,000 users
 * and half for 60,000 a look-up takes 40 µs, and 49 without this.
 */
export function createRowCaches(db: Sqlite.Database, onOperation: OnOperation = () => {}): RowCaches {
  const dataVersion = db.prepare<[], number>("PRAGMA data_version").pluck();
  const caches: Array<Map<string, unknown>> = [];
  let seen: number | undefined;
  let isCurrent = false;
  // Nothing was written, and an end that cannot fail keeps nothing open.
  const [begin, rollback] = [db.prepare("BEGIN"), db.prepare("ROLLBACK")];
  const endTurn = () => {
    isCurrent = false;
    if (db.inTransaction) rollback.run();
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
    endTurn,
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
          if (!db.inTransaction) begin.run();
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
