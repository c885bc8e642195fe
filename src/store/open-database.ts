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
  /** How long opening may hold the event loop up while another process has the file, in milliseconds. */
  readonly startTimeoutMs: number;
  /**
   * How long an operation may hold it up so, in milliseconds: short (threats A04), since sqlite-driver.ts tries again without
   * blocking.
   */
  readonly busyTimeoutMs: number;
}

/**
 * The store's own file. FULL: the last commit survives a power loss, which a rotated refresh token needs. secure_delete:
 * deleted rows are overwritten. trusted_schema: a planted schema calls no functions.
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

const DANGLING =
  "is a link to a file that does not exist; mount what it leads to, or delete the link to begin a new store";

/**
 * Opens the database file and brings it to this version's schema; creates it when there is none, with the folder of a
 * relative name.
 * Database, WAL and shared memory are for the owner alone. Throws StoreOpenError, with nothing changed, when the file
 * is not ours or from a newer version.
 */
export function openDatabase(path: string, kind = STORE): Database.Database {
  const file = databaseFile(path);
  let db: Database.Database | undefined;
  try {
    makeFolder(path);
    createFile(file);
    db = new Database(file, { timeout: kind.startTimeoutMs });
    prepareWhileBusy(db, file, kind);
    setPragma(db, file, "busy_timeout", kind.busyTimeoutMs, kind.busyTimeoutMs);
    return db;
  } catch (error) {
    db?.close();
    throw openErrorFrom(file, error);
  }
}

/** The absolute name of a database file. Throws StoreOpenError for one that SQLite would open under another name. */
export function databaseFile(path: string): string {
  const file = resolve(path);
  // better-sqlite3 trims names, and would then open another file than the one made here.
  if (file !== file.trim()) throw new StoreOpenError(file, "the name must not end in white space");
  return file;
}

/** Whether a link is there and what it leads to is not, as where a volume is not mounted. */
export function isDanglingLink(path: string): boolean {
  // The link first: a file that another process makes between two looks is no link.
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true && !existsSync(path);
}

/** SQLite gives WAL and shared memory the mode of the database file, so that one is made first. */
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
    // A file system without modes, or another owner's file: all tokens in it are sealed, so the service may run.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  }
}

/** SQLite does not wait for another process that changes to WAL at the same moment, whatever the busy timeout says. */
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
  for (const [name, value, expected] of pragmas) setPragma(db, file, name, value, expected);
  migrate(db, file, migrations);
}

/** SQLite ignores a pragma it cannot honour without a word, so what holds afterwards is checked. */
function setPragma(
  db: Database.Database,
  file: string,
  name: string,
  value: string | number,
  expected: string | number,
): void {
  db.pragma(`${name} = ${value}`);
  if (db.pragma(name, { simple: true }) === expected) return;
  throw new StoreOpenError(
    file,
    `SQLite does not accept ${name} = ${value} here; a network file system cannot be used`,
  );
}

/** The id that the store was made with. */
export function storeIdOf(db: Database.Database): string {
  return db.prepare<[], string>("SELECT id FROM store_identity").pluck().get() as string;
}

/**
 * Applies the migrations that a database has not seen. All of them or none: they run in one write transaction, which
 * also keeps a second process from applying them at the same time.
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
 * Throws StoreOpenError when the database is from a newer version, not the relay's, or not what the migrations to its
 * version make. Writes nothing.
 */
export function assertKnownVersion(db: Database.Database, file: string, migrations = SQLITE_MIGRATIONS): void {
  // Both in one transaction, so that they are of one moment: another process may be migrating.
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

/** Made anew in memory, in a millisecond or two. */
function schemaMadeBy(migrations: readonly string[]): ReadonlyMap<string, string> {
  const db = new Database(":memory:");
  try {
    for (const sql of migrations) db.exec(sql);
    return schemaOf(db);
  } finally {
    db.close();
  }
}

/** Name → text of each table, index and trigger; others may have added some. SQLite quotes the names that were changed. */
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
