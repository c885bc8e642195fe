import type Database from "better-sqlite3";
import type { Queries, Session } from "./postgres-session.js";

/** What is copied, in an order in which nothing refers to what is not there yet; tickets end within minutes. */
const TABLES = [
  "applications",
  "oauth_clients",
  "connections",
  "webhook_endpoints",
  "webhook_events",
  "key_checks",
  "audit_records",
] as const;

/** How many rows of each table were copied. */
export type CopyCounts = Readonly<Record<(typeof TABLES)[number], number>>;

/** The database that was to be copied into holds something. */
class StoreNotEmptyError extends Error {
  constructor() {
    super("The database to copy to holds a store with contents already. Copy to an empty one. Nothing was changed.");
    this.name = "StoreNotEmptyError";
  }
}

/** Rows that are sent at a time. */
const BATCH = 200;

/**
 * Copies a store in SQLite into an empty one in PostgreSQL, sealed values as they are: the same key file opens them.
 * All in one transaction, so that a copy that was interrupted left nothing. Rejects with StoreNotEmptyError.
 */
export async function copyStore(from: Database.Database, to: Session): Promise<CopyCounts> {
  return to.write(async (queries) => {
    // Whoever copies or migrates at the same time waits.
    await queries.send("SELECT version FROM relay_schema FOR UPDATE");
    for (const table of [...TABLES, "tickets"]) await requireEmpty(queries, table);
    const counts: Array<readonly [string, number]> = [];
    for (const table of TABLES) counts.push([table, await copyTable(from, queries, table)]);
    await copyTable(from, queries, "application_origins");
    // What waits in spools for the one is for the other.
    await queries.send("DELETE FROM store_identity");
    await copyTable(from, queries, "store_identity");
    return Object.fromEntries(counts) as CopyCounts;
  });
}

async function requireEmpty(queries: Queries, table: string): Promise<void> {
  const { rows } = await queries.send(`SELECT 1 FROM ${table} LIMIT 1`);
  if (rows.length > 0) throw new StoreNotEmptyError();
}

async function copyTable(from: Database.Database, queries: Queries, table: string): Promise<number> {
  // Places are given anew, in the same order.
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
  }
  return count;
}

/** Text that is kept as bytes in PostgreSQL. */
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
