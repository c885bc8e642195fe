import { chmodSync, closeSync, existsSync, lstatSync, openSync, statSync } from "node:fs";
import { resolve } from "node:path";
import Database from "better-sqlite3";
import { makeFolder } from "../lib/secret-file.js";
import { StoreOpenError } from "./database.js";
import { otherSchema, plainSql, requireKnownVersion, SQLITE_MIGRATIONS } from "./schema.js";
import { isBusy, openErrorFrom } from "./sqlite-error.js";

/** Name, value to set, value to find afterwards. */
type Pragma = readonly [name: string, value: string, expected: string | number];

/** What a database file is for. */
export interface DatabaseKind {
  readonly pragmas: readonly Pragma[];
  readonly migrations: readonly string[];
  /** How long opening may block the event loop while another process has the file locked, in milliseconds. */
  readonly startTimeoutMs: number;
  /**
   * How long an operation may block it in the same way, in milliseconds: short (threats A04), since sqlite-driver.ts
   * retries without blocking.
   */
  readonly busyTimeoutMs: number;
}

/**
 * The store's own file. synchronous FULL: the last commit survives a power loss, which a rotated refresh token needs.
 * secure_delete: deleted rows are overwritten. trusted_schema OFF: a planted schema cannot call functions.
 */
const STORE: DatabaseKind = {
  pragmas: [
    ["trusted_schema", "OFF", 0],
    ["foreign_keys", "ON", 1],
    ["secure_delete", "ON", 1],
    ["journal_mode", "WAL", "wal"],
    ["synchronous", "FULL", 2],
  ],
  migrations: SQLITE_MIGRATIONS,
  // Nothing else runs yet.
  startTimeoutMs: 5_000,
  busyTimeoutMs: 250,
};

const DANGLING = "is a link to a file that does not exist; mount its target, or delete the link to create a new store";

/**
 * Opens the database file and migrates it to this version's schema. Creates a missing file, and for a relative name its
 * folder. Database, WAL and shared memory are readable by the owner only. Throws StoreOpenError, with nothing changed,
 * when the file is not the relay's or is from a newer version.
 */
export function openDatabase(path: string, kind = STORE): Database.Database {
  const file = databaseFile(path);
  let db: Database.Database | undefined;
  try {
    makeFolder(path);
    createFile(file);
    db = new Database(file, { timeout: kind.startTimeoutMs });
    prepareWhileBusy(db, file, kind);
    setPragma(db, file, ["busy_timeout", String(kind.busyTimeoutMs), kind.busyTimeoutMs]);
    return db;
  } catch (error) {
    db?.close();
    throw openErrorFrom(file, error);
  }
}

/**
 * The absolute name of a database file. Throws StoreOpenError for one that SQLite would open under another name, and
 * for what is not a file: SQLite would take a device such as /dev/null for an empty one.
 */
export function databaseFile(path: string): string {
  const file = resolve(path);
  // better-sqlite3 trims names, and would then open a different file from the one created here.
  if (file !== file.trim()) throw new StoreOpenError(file, "the name must not end in white space");
  if (existsSync(file) && !statSync(file).isFile()) throw new StoreOpenError(file, "is not a file");
  return file;
}

/** Whether a symbolic link exists but its target does not, for example because a volume is not mounted. */
export function isDanglingLink(path: string): boolean {
  // The link is checked first: a file that another process creates between the two checks is not a link.
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true && !existsSync(path);
}

/** Creates the file with mode 0600. SQLite gives WAL and shared memory the mode of the database file. */
function createFile(file: string): void {
  if (isDanglingLink(file)) throw new StoreOpenError(file, DANGLING);
  closeSync(openSync(file, "a", 0o600));
}

function closeToOthers(file: string): void {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined || (stats.mode & 0o077) === 0) return;
  try {
    chmodSync(file, 0o600);
  } catch (error) {
    // EPERM: a file system without modes, or another owner's file. All tokens in it are sealed, so the service may run.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  }
}

/** Retries while busy: SQLite ignores the busy timeout while another process switches to WAL at the same moment. */
function prepareWhileBusy(db: Database.Database, file: string, kind: DatabaseKind): void {
  const until = performance.now() + kind.startTimeoutMs;
  for (let isPrepared = false; !isPrepared; ) {
    try {
      prepareDatabase(db, file, kind);
      isPrepared = true;
    } catch (error) {
      if (!isBusy(error) || performance.now() > until) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

function prepareDatabase(db: Database.Database, file: string, { pragmas, migrations }: DatabaseKind): void {
  assertKnownVersion(db, file, migrations);
  for (const ours of [file, `${file}-wal`, `${file}-shm`]) closeToOthers(ours);
  for (const pragma of pragmas) setPragma(db, file, pragma);
  migrate(db, file, migrations);
}

/** Sets a pragma and reads it back, since SQLite silently ignores one that it cannot honour. */
function setPragma(db: Database.Database, file: string, [name, value, expected]: Pragma): void {
  db.pragma(`${name} = ${value}`);
  if (db.pragma(name, { simple: true }) === expected) return;
  throw new StoreOpenError(
    file,
    `SQLite does not accept ${name} = ${value} here; a network file system cannot be used`,
  );
}

/** The id that the store got when it was created. */
export function storeIdOf(db: Database.Database): string {
  return db.prepare<[], string>("SELECT id FROM store_identity").pluck().get() as string;
}

/**
 * Applies the pending migrations, all of them or none: they run in one write transaction, which also keeps a second
 * process from applying them at the same time.
 */
export function migrate(db: Database.Database, file: string, migrations = SQLITE_MIGRATIONS): void {
  if (versionOf(db) === migrations.length) return;
  db.transaction(() => {
    // Read again: another process may have migrated while this one waited for the lock.
    assertKnownVersion(db, file, migrations);
    for (const sql of migrations.slice(versionOf(db))) db.exec(sql);
    db.pragma(`user_version = ${migrations.length}`);
  }).immediate();
}

/**
 * Throws StoreOpenError when the database is from a newer version, is not the relay's, or differs from what the
 * migrations to its version create. Writes nothing.
 */
export function assertKnownVersion(db: Database.Database, file: string, migrations = SQLITE_MIGRATIONS): void {
  // Both in one transaction, so that they are consistent: another process may be migrating.
  const { version, schema } = db.transaction(() => ({ version: versionOf(db), schema: schemaOf(db) }))();
  requireKnownVersion(version, file, migrations);
  if (version === 0 && schema.size > 0) {
    throw new StoreOpenError(file, "belongs to another program: it has tables but no schema version of the relay");
  }
  for (const [name, sql] of schemaMadeBy(migrations.slice(0, version))) {
    if (schema.get(name) === sql) continue;
    throw otherSchema(file, version, new Database.SqliteError(`${name} differs`, "SQLITE_CORRUPT"));
  }
}

/** The schema that the migrations create. Builds it in memory, in a millisecond or two. */
function schemaMadeBy(migrations: readonly string[]): ReadonlyMap<string, string> {
  const db = new Database(":memory:");
  try {
    for (const sql of migrations) db.exec(sql);
    return schemaOf(db);
  } finally {
    db.close();
  }
}

/**
 * Name → SQL of each table, index and trigger, including any that others added. SQLite quotes names that were renamed.
 */
function schemaOf(db: Database.Database): ReadonlyMap<string, string> {
  const rows = db
    .prepare<[], [string, string]>("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    .raw()
    .all();
  return new Map(rows.map(([name, sql]) => [name, plainSql(sql).replaceAll(/"(\w+)"/g, "$1")]));
}

/** Whether the schema is this version's. */
export function isCurrent(db: Database.Database): boolean {
  return versionOf(db) === SQLITE_MIGRATIONS.length;
}

function versionOf(db: Database.Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}
