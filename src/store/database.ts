/**
 * One statement with `:name` parameters, in the SQL that SQLite and PostgreSQL share. What they do not share each of
 * them translates for itself (sqlite-driver.ts, postgres-session.ts):
 *
 * - `:clock` is the store's clock in milliseconds since the epoch: that of this process in SQLite, the database's in
 *   PostgreSQL (threats 3.3).
 * - `, :clock AS clock` reads the database's clock with a row; SQLite has none of its own and leaves it out.
 * - `CAST(:x AS BYTEA)` is bytes; `CAST(:x AS KEY)` is the type of columns with text of others, which PostgreSQL keeps as
 *   bytes, since its own text holds no NUL and a user's id may (threats T02).
 * - `FOR UPDATE` is PostgreSQL's alone: a transaction of SQLite has the whole database for itself.
 * - `INDEXED BY` is SQLite's alone, and `instr()` has another name in PostgreSQL.
 */
export interface Statement<Parameters, Row> {
  /** Unique in the store; PostgreSQL knows the prepared statement by it. */
  readonly name: string;
  readonly sql: string;
  /** What goes in and what comes out; never called. */
  readonly types?: (parameters: Parameters, row: Row) => void;
}

/** Names a statement, and says what goes in and what comes out. */
export function createStatement<Parameters extends object, Row = never>(
  name: string,
  sql: string,
): Statement<Parameters, Row> {
  return { name, sql };
}

/** One use of a statement. */
export interface Query {
  readonly kind: "all" | "first" | "run";
  readonly statement: Statement<never, never>;
  readonly parameters: object;
}

/**
 * What is done in one transaction, or read at once: it yields queries and is given their answers. SQLite runs all of it
 * without a pause, as better-sqlite3 needs it; PostgreSQL waits for each answer.
 */
export type Operation<Result> = Generator<Query, Result, unknown>;

/** Every row. */
export function* all<Parameters extends object, Row>(
  statement: Statement<Parameters, Row>,
  parameters: Parameters,
): Operation<Row[]> {
  return (yield { kind: "all", statement, parameters }) as Row[];
}

/** The first row, undefined when there is none. */
export function* first<Parameters extends object, Row>(
  statement: Statement<Parameters, Row>,
  parameters: Parameters,
): Operation<Row | undefined> {
  return (yield { kind: "first", statement, parameters }) as Row | undefined;
}

/** Returns how many rows were changed. */
export function* run<Parameters extends object, Row>(
  statement: Statement<Parameters, Row>,
  parameters: Parameters,
): Operation<number> {
  return (yield { kind: "run", statement, parameters }) as number;
}

/** Runs operations on a database; rejects with RelayError STORE_UNAVAILABLE when it cannot be used. */
export interface Database {
  /** The clock of this process, milliseconds since the epoch. */
  readonly now: () => number;
  /** Runs reads. */
  read<T>(operation: () => Operation<T>): Promise<T>;
  /**
   * Runs one transaction. It may run more than once, but only one run is kept.
   *
   * @param forget lets go of the rows that it changed and a cache may keep; default all that are kept.
   */
  write<T>(operation: () => Operation<T>, forget?: () => void): Promise<T>;
  createCache<Key, Value extends Identified>(options: CacheOptions<Key, Value>): Cache<Key, Value>;
}

interface Identified {
  readonly id: string;
}

/** Rows of one kind that are kept in memory as they were read. */
export interface Cache<Key, Value> {
  /** The value of this key as it is now. */
  find(key: Key): Promise<Value | undefined>;
  /**
   * The same for each call: what another process changed may be seen up to a second late, what this one changed is seen
   * at once.
   */
  lookUp(key: Key): Promise<Value | undefined>;
  /** This process has changed the row. */
  forget(key: Key): void;
  /** This process has changed what only `find()` must tell at once: who has the lease. */
  forgetFound(key: Key): void;
}

/** What a cache needs. */
export interface CacheOptions<Key, Value> {
  /** How many rows SQLite keeps. */
  readonly maxRows: number;
  /** One text for each key. */
  readonly textOf: (key: Key) => string;
  readonly find: (key: Key) => Operation<Value | undefined>;
  /** How PostgreSQL reads those that are asked for at the same time, in the order of the keys; by default one by one. */
  readonly findMany?: (keys: readonly Key[]) => Operation<ReadonlyArray<Value | undefined>>;
  /** How PostgreSQL reads those that are in use again: the values with these ids, in any order. */
  readonly findByIds: (ids: readonly string[]) => Operation<readonly Value[]>;
}

/** For writes to tables of which no cache keeps a row. */
export function nothing(): void {}

/** Whether a UNIQUE constraint refused a row: the codes of SQLite and of PostgreSQL. */
export function isUniqueViolation(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === "SQLITE_CONSTRAINT_UNIQUE" || code === "23505";
}

/** Text from `start` on, and before `end`, compared as UTF-8 bytes. */
export interface KeyRange {
  readonly start: string;
  /** No text of its own. In SQL: `CAST(:end AS TEXT)`. */
  readonly end: Buffer;
}

/** In no UTF-8 text. */
const GREATEST = Buffer.of(0xff);

/**
 * All text that begins with `prefix`, from behind `after` on.
 *
 * @param after a text that begins so, too; undefined: from the first one on.
 */
export function rangeOfPrefix(prefix: string, after: string | undefined): KeyRange {
  const end = Buffer.concat([Buffer.from(prefix), GREATEST]);
  return { start: after === undefined ? prefix : behind(after), end };
}

/** The one text alone. */
export function rangeOfOne(text: string): KeyRange {
  return { start: text, end: Buffer.from(behind(text)) };
}

/** The least text that is greater. */
function behind(text: string): string {
  return `${text}\0`;
}

/** A database that the relay cannot start with. The message is for the operator: which one, and what to do. */
export class StoreOpenError extends Error {
  /** @param database its file, or its address without user and password. */
  constructor(database: string, problem: string, options?: { cause?: unknown }) {
    super(`Database ${database}: ${problem}`, options);
    this.name = "StoreOpenError";
  }
}
