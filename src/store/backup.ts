import { existsSync } from "node:fs";
import Database from "better-sqlite3";
import { createWhole } from "../lib/secret-file.js";
import { databaseFile } from "./open-database.js";
import { isDamage, openErrorFrom } from "./sqlite-error.js";
import { StoreOpenError } from "./store-open-error.js";

/** The wait for a lock, in milliseconds: a commit of the service takes far less. */
const TIMEOUT_MS = 5_000;

const COPY_DAMAGED = "the copy is damaged and the database is not; check the disk that the copy is written to";
const DAMAGED =
  "the database itself is damaged, so no copy of it was kept; stop the relay, keep the files, and restore the last good backup";

/**
 * Copies a SQLite store, as it is in one moment, into a new file with mode 0600, while services and commands go on using
 * it (https://sqlite.org/backup.html). Sealed values stay sealed. The file has its name only when it is whole, checked
 * and on disk. Rejects with StoreOpenError, with no file left, when there is no such database, the target exists, or
 * what was copied is damaged.
 */
export async function backupDatabase(path: string, target: string): Promise<void> {
  const file = databaseFile(path);
  const copy = databaseFile(target);
  try {
    if (!existsSync(copy) && (await createWhole(copy, (draft) => copyInto(file, draft)))) return;
  } catch (error) {
    // What is wrong with the database may show in the middle of a copy.
    throw isDamage(error) ? damageFrom(file, error) : openErrorFrom(copy, error);
  }
  throw new StoreOpenError(copy, "exists already; a backup replaces nothing");
}

async function copyInto(file: string, draft: string): Promise<void> {
  const db = new Database(file, { fileMustExist: true, timeout: TIMEOUT_MS });
  try {
    // Everything that is left at once: a copy in steps would begin again with each commit of the service.
    await db.backup(draft, { progress: ({ remainingPages }) => remainingPages });
    if (isWhole(draft)) return;
    // Pages are copied as they are, so a copy that does not fit together is that of a database that does not.
    throw isSound(db) ? new StoreOpenError(draft, COPY_DAMAGED) : new StoreOpenError(file, DAMAGED);
  } finally {
    db.close();
  }
}

function damageFrom(file: string, error: unknown): StoreOpenError {
  const isDatabase = (error as { code?: unknown }).code !== "SQLITE_NOTADB";
  return isDatabase ? new StoreOpenError(file, DAMAGED, { cause: error }) : openErrorFrom(file, error);
}

function isWhole(copy: string): boolean {
  const db = new Database(copy, { fileMustExist: true });
  try {
    // One file, without a write-ahead log beside it.
    db.pragma("journal_mode = DELETE");
    return isSound(db);
  } finally {
    db.close();
  }
}

/** Whether every page of a database fits to the others; reads all of them. */
function isSound(db: Database.Database): boolean {
  try {
    return db.pragma("integrity_check(1)", { simple: true }) === "ok";
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}
