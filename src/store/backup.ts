import { once } from "node:events";
import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { createWhole, removeDrafts } from "../lib/secret-file.js";
import type { CopyResult, CopyTask } from "./copy-file.js";
import { StoreOpenError } from "./database.js";
import { databaseFile } from "./open-database.js";
import type { Queries, Session } from "./postgres-session.js";
import { isBusy, isDamage, openErrorFrom } from "./sqlite-error.js";

/** How long to wait for a lock, in milliseconds: a commit of the service takes far less. */
const TIMEOUT_MS = 5_000;

const COPY_DAMAGED = "the copy is damaged, but the database is not; check the disk that the copy is written to";
const DAMAGED =
  "the database itself is damaged, so no copy of it was kept; stop the relay, keep the files, and restore the last good backup";

/** Removes the draft of one copy, with SQLite's files beside it; drafts of other copies to the same target stay. */
export const removeUnfinished = (target: string, draft: string): Promise<void> =>
  removeDrafts(databaseFile(target), draft);

/**
 * Copies a consistent snapshot of a SQLite store into a new file with mode 0600, while services and commands go on
 * using the store (https://sqlite.org/backup.html). Sealed values stay sealed. The file gets its name only when it is
 * complete, checked and on disk. Rejects with StoreOpenError, leaving no file, when there is no such database, the
 * target exists, or the copy is damaged.
 *
 * @param onDraft called with the name of the draft file before it is created.
 */
export async function backupDatabase(path: string, target: string, onDraft?: (draft: string) => void): Promise<void> {
  const file = databaseFile(path);
  const copy = databaseFile(target);
  try {
    if (!existsSync(copy) && (await createWhole(copy, (draft) => copyInto(file, draft), onDraft))) return;
  } catch (error) {
    // Damage of the database may show in the middle of the copy.
    throw isDamage(error) ? damageFrom(file, error) : openErrorFrom(copy, error);
  }
  throw new StoreOpenError(copy, "already exists; a backup never overwrites a file");
}

/** The built worker script: worker threads cannot run TypeScript, so a relay that runs from source uses the build. */
const THREAD = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/src/store/copy-file.js" : "./copy-file.js",
  import.meta.url,
);

async function copyInto(file: string, draft: string): Promise<void> {
  if (!existsSync(THREAD))
    throw new StoreOpenError(file, "cannot be copied by a relay that has not been built; run npm run build");
  const workerData: CopyTask = { file, draft, timeoutMs: TIMEOUT_MS };
  // Rejects with the error if the thread ends with one.
  const [result] = (await once(new Worker(THREAD, { workerData, execArgv: [] }), "message")) as [CopyResult];
  if (result.state === "failed") {
    const error = new Database.SqliteError(result.message, result.code);
    throw isBusy(error) ? openErrorFrom(file, error) : error;
  }
  if (result.state === "damaged copy") throw new StoreOpenError(draft, COPY_DAMAGED);
  if (result.state === "damaged database") throw new StoreOpenError(file, DAMAGED);
}

function damageFrom(file: string, error: unknown): StoreOpenError {
  const isDatabase = (error as { code?: unknown }).code !== "SQLITE_NOTADB";
  return isDatabase ? new StoreOpenError(file, DAMAGED, { cause: error }) : openErrorFrom(file, error);
}

/** The tables to copy, each after those it refers to. Tickets are left out: they expire within minutes. */
const TABLES = [
  "applications",
  "oauth_clients",
  "connections",
  "webhook_endpoints",
  "webhook_events",
  "webhook_deliveries",
  "key_checks",
  "audit_records",
  "ended_sessions",
] as const;

/** How many rows of each table were copied. */
export type CopyCounts = Readonly<Record<(typeof TABLES)[number], number>>;

/** The database to copy to is not empty. */
class StoreNotEmptyError extends Error {
  constructor() {
    super("The target database already contains a store with data. Copy to an empty one. Nothing was changed.");
    this.name = "StoreNotEmptyError";
  }
}

/** Rows per INSERT statement. */
const BATCH = 200;

/**
 * Copies a SQLite store into an empty PostgreSQL store. Sealed values are copied unchanged: the same key file opens
 * them. Everything is one transaction, so an interrupted copy leaves nothing behind. Rejects with StoreNotEmptyError.
 *
 * @param onCopied called with each table's name and the number of its rows copied so far.
 */
export async function copyStore(
  from: Database.Database,
  to: Session,
  onCopied: (table: string, rows: number) => void = () => {},
): Promise<CopyCounts> {
  return to.write(async (queries) => {
    // Locks out other copies and migrations.
    await queries.send("SELECT version FROM relay_schema FOR UPDATE");
    for (const table of [...TABLES, "tickets"]) await requireEmpty(queries, table);
    const counts: Array<readonly [string, number]> = [];
    for (const table of TABLES) {
      counts.push([table, await copyTable(from, queries, table, (rows) => onCopied(table, rows))]);
    }
    await copyTable(from, queries, "application_origins");
    // The copy takes over the identity, so that it gets the answers waiting in spools.
    await queries.send("DELETE FROM store_identity");
    await copyTable(from, queries, "store_identity");
    return Object.fromEntries(counts) as CopyCounts;
  });
}

async function requireEmpty(queries: Queries, table: string): Promise<void> {
  const { rows } = await queries.send(`SELECT 1 FROM ${table} LIMIT 1`);
  if (rows.length > 0) throw new StoreNotEmptyError();
}

async function copyTable(
  from: Database.Database,
  queries: Queries,
  table: string,
  onCopied: (rows: number) => void = () => {},
): Promise<number> {
  // `place` is left out: it is assigned again, in the same order.
  const columns = from
    .prepare<[string], string>("SELECT name FROM pragma_table_info(?) WHERE name <> 'place'")
    .pluck()
    .all(table);
  const isBytes = await bytesColumns(queries, table);
  const page = from.prepare<[number, number], [number, ...unknown[]]>(
    `SELECT rowid, ${columns.join(", ")} FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ?`,
  );
  let count = 0;
  for (let rows = page.raw().all(0, BATCH); rows.length > 0; rows = page.raw().all(rows.at(-1)?.[0] ?? 0, BATCH)) {
    const values = rows.flatMap(([, ...row]) =>
      row.map((value, at) => bytesFrom(value, isBytes.has(columns[at] ?? ""))),
    );
    count += (await queries.send(insertSql(table, columns, rows.length), values)).rowCount ?? 0;
    onCopied(count);
  }
  return count;
}

/** Names of the columns that PostgreSQL keeps as bytes, some of which are text in SQLite. */
async function bytesColumns(queries: Queries, table: string): Promise<ReadonlySet<string>> {
  const sql = `SELECT column_name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1 AND data_type = 'bytea'`;
  const { rows } = await queries.send(sql, [table]);
  return new Set(rows.map(({ column_name }) => String(column_name)));
}

function bytesFrom(value: unknown, isBytes: boolean): unknown {
  return isBytes && typeof value === "string" ? Buffer.from(value) : value;
}

function insertSql(table: string, columns: readonly string[], rows: number): string {
  const tuple = (row: number) => `(${columns.map((_, at) => `$${row * columns.length + at + 1}`).join(", ")})`;
  const tuples = Array.from({ length: rows }, (_, row) => tuple(row));
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES ${tuples.join(", ")}`;
}
