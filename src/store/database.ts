import { createHash } from "node:crypto";
import { inBatches } from "../lib/turns.js";

/**
 * One statement with `:name` parameters, in the SQL that SQLite and PostgreSQL share. The drivers translate the rest
 * (sqlite-driver.ts, postgres-session.ts):
 *
 * - Columns and parameters have snake_case names in SQL, and the same in camelCase in rows and parameters; NULL is
 *   `undefined`.
 * - `:clock` is the store's clock in milliseconds since the epoch: that of this process in SQLite, the database's in
 *   PostgreSQL (threats 3.3).
 * - `, :clock AS clock` reads the database's clock with a row; SQLite has none of its own and leaves it out.
 * - `CAST(:x AS BYTEA)` is bytes; `CAST(:x AS KEY)` is the type of columns with text from outside, which PostgreSQL
 *   keeps as bytes, since its text type cannot hold a NUL and a user's id may (threats T02).
 * - `FOR UPDATE` and other row locks are for PostgreSQL only: a SQLite transaction locks the whole database.
 * - `INDEXED BY` is for SQLite only, and `instr()` has another name in PostgreSQL.
 */
export interface Statement<Parameters, Row> {
  /** Of the prepared statement in PostgreSQL: a hash of the SQL. */
  readonly name: string;
  readonly sql: string;
  /** Carries the types of parameters and rows; never called. */
  readonly types?: (parameters: Parameters, row: Row) => void;
}

/** Creates a statement with the types of its parameters and rows. */
export function createStatement<Parameters extends object, Row = never>(sql: string): Statement<Parameters, Row> {
  return { name: createHash("sha256").update(sql).digest("base64url").slice(0, 20), sql };
}

/** The camelCase form of a snake_case name. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Returns a function that builds a row from the values of its columns. It copies a row that has all members already: a
 * connection of a PostgreSQL list takes 11 µs so, and 19 if they are added one by one.
 *
 * @param columns their names in SQL.
 */
export function createRowBuilder(columns: readonly string[]): (values: readonly unknown[]) => object {
  const names = columns.map(camelCase);
  const empty: Record<string, unknown> = Object.fromEntries(names.map((name) => [name, undefined]));
  return (values) => {
    const row = { ...empty };
    for (let at = 0; at < names.length; at++) row[names[at] as string] = values[at] ?? undefined;
    return row;
  };
}

/** One use of a statement. */
export interface Query {
  readonly kind: "all" | "first" | "run";
  readonly statement: Statement<never, never>;
  readonly parameters: object;
}

/**
 * The work of one transaction, or of one read, as a generator that yields queries and receives their results. SQLite
 * runs it synchronously, as better-sqlite3 requires; PostgreSQL awaits each result.
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
   * Runs one transaction. The operation may run more than once, but only one run is committed.
   *
   * @param forget drops the changed rows from caches; by default drops all cached rows.
   */
  write<T>(operation: () => Operation<T>, forget?: () => void): Promise<T>;
  createCache<Key, Value extends Identified>(options: CacheOptions<Key, Value>): Cache<Key, Value>;
}

interface Identified {
  readonly id: string;
}

/** A cache for rows of one kind. */
export interface Cache<Key, Value> {
  /** The value of this key as it is now. */
  find(key: Key): Promise<Value | undefined>;
  /**
   * The look-up of every call: changes by other processes may be seen up to a second late, changes by this one at once.
   */
  lookUp(key: Key): Promise<Value | undefined>;
  /** Drops the row, which this process has changed. */
  forget(key: Key): void;
  /** Drops the row for `find()`, when this process has changed only the lease, which `lookUp()` may show late. */
  forgetFound(key: Key): void;
}

/** What a cache needs. */
export interface CacheOptions<Key, Value> {
  /** Most rows that SQLite keeps. */
  readonly maxRows: number;
  /** One text for each key. */
  readonly textOf: (key: Key) => string;
  readonly find: (key: Key) => Operation<Value | undefined>;
  /** Reads rows that are requested at the same time, in the order of the keys; PostgreSQL only. Default: one by one. */
  readonly findMany?: (keys: readonly Key[]) => Operation<ReadonlyArray<Value | undefined>>;
  /** Reads the values with these ids again, in any order, for those that are in use; PostgreSQL only. */
  readonly findByIds: (ids: readonly string[]) => Operation<readonly Value[]>;
}

/** The `forget` of writes to tables that are not cached. */
export function nothing(): void {}

/** Rows deleted per transaction: a few milliseconds of the write lock and of the event loop. */
const DELETED_AT_ONCE = 200;

/**
 * Creates a function that deletes an application's rows from a table, in short transactions.
 *
 * @param order the columns after `application_id` in an index of the table.
 * @param condition what else must be true of them.
 */
export function createRemoval(table: string, order: string, condition = "") {
  const statement = createStatement<{ id: string; limit: number }>(`DELETE FROM ${table} WHERE id IN
       (SELECT id FROM ${table} WHERE application_id = :id ${condition} ORDER BY ${order} LIMIT :limit)`);
  return ({ write }: Pick<Database, "write">, id: string, forget?: () => void): Promise<void> =>
    inBatches(DELETED_AT_ONCE, () => write(() => run(statement, { id, limit: DELETED_AT_ONCE }), forget));
}

/** Whether a UNIQUE constraint refused a row, by the codes of SQLite and PostgreSQL. */
export function isUniqueViolation(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === "SQLITE_CONSTRAINT_UNIQUE" || code === "23505";
}

/** Text from `start` up to, but not including, `end`, compared as UTF-8 bytes. */
export interface KeyRange {
  readonly start: string;
  /** May be invalid UTF-8, hence bytes. In SQL: `CAST(:end AS KEY)`. */
  readonly end: Buffer;
}

/** A byte that sorts after every byte of UTF-8 text. */
const GREATEST = Buffer.of(0xff);

/**
 * The range of all text that begins with `prefix`, starting after `after`.
 *
 * @param after a text with the same prefix; undefined: starts with the first one.
 */
export function rangeOfPrefix(prefix: string, after: string | undefined): KeyRange {
  const end = Buffer.concat([Buffer.from(prefix), GREATEST]);
  return { start: after === undefined ? prefix : behind(after), end };
}

/** The range of exactly one text. */
export function rangeOfOne(text: string): KeyRange {
  return { start: text, end: Buffer.from(behind(text)) };
}

/** The smallest text that is greater. */
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
