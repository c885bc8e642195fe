import { dirname, resolve } from "node:path";
import Database from "better-sqlite3";
import { syncFolder, writeNewFile } from "../secret-file.js";
import { databaseFile } from "./open-database.js";
import { openErrorFrom } from "./sqlite-error.js";
import { StoreOpenError } from "./store-open-error.js";

/** The wait for a lock, in milliseconds: a commit of the service takes far less. */
const TIMEOUT_MS = 5_000;

/**
 * Copies a SQLite store, as it is in one moment, into a new file with mode 0600, while services and commands go on using
 * it (https://sqlite.org/backup.html). Sealed values stay sealed. Resolves when the copy is whole and on disk; rejects
 * with StoreOpenError, with no file left, when there is no such database, the target exists, or the copy is damaged.
 */
export async function backupDatabase(path: string, target: string): Promise<void> {
  const file = databaseFile(path);
  const copy = databaseFile(target);
  try {
    await writeNewFile(copy, () => copyInto(file, copy));
    await syncFolder(dirname(resolve(copy)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      throw new StoreOpenError(copy, "exists already; a backup replaces nothing");
    }
    throw openErrorFrom(copy, error);
  }
}

async function copyInto(file: string, copy: string): Promise<void> {
  const db = new Database(file, { fileMustExist: true, timeout: TIMEOUT_MS });
  try {
    // Everything that is left at once: a copy in steps would begin again with each commit of the service.
    await db.backup(copy, { progress: ({ remainingPages }) => remainingPages });
  } finally {
    db.close();
  }
  assertWhole(copy);
}

function assertWhole(copy: string): void {
  const db = new Database(copy, { fileMustExist: true });
  try {
    // One file, without a write-ahead log beside it.
    db.pragma("journal_mode = DELETE");
    if (db.pragma("integrity_check", { simple: true }) !== "ok") throw new StoreOpenError(copy, "the copy is damaged");
  } finally {
    db.close();
  }
}
