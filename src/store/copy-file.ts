/**
 * A thread of its own, which copies a SQLite database and looks whether the copy is whole. SQLite does both in one go,
 * which takes a second for each gigabyte or more: the command hears a signal meanwhile.
 */
import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";

/** What is copied, and to where: a file that exists. */
export interface CopyTask {
  readonly file: string;
  readonly draft: string;
  /** The wait for a lock, in milliseconds. */
  readonly timeoutMs: number;
}

/** What came of it: a whole copy, one that is damaged and the database is not, a damaged database, or SQLite's error. */
export type CopyResult =
  | { readonly state: "whole" | "damaged copy" | "damaged database" }
  | { readonly state: "failed"; readonly message: string; readonly code: string };

/** Does what the thread was started for. */
async function copy({ file, draft, timeoutMs }: CopyTask): Promise<CopyResult> {
  const db = new Database(file, { fileMustExist: true, timeout: timeoutMs });
  try {
    // Everything that is left at once: a copy in steps would begin again with each commit of the service.
    await db.backup(draft, { progress: ({ remainingPages }) => remainingPages });
    if (isWhole(draft)) return { state: "whole" };
    // Pages are copied as they are, so a copy that does not fit together is that of a database that does not.
    return { state: isSound(db) ? "damaged copy" : "damaged database" };
  } finally {
    db.close();
  }
}

function isWhole(copied: string): boolean {
  const db = new Database(copied, { fileMustExist: true });
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
    if (error instanceof Database.SqliteError && /^SQLITE_(?:CORRUPT|NOTADB)/.test(error.code)) return false;
    throw error;
  }
}

/** An error of another thread would be of another class; what is no error of SQLite ends this one. */
function failed(error: unknown): CopyResult {
  if (!(error instanceof Database.SqliteError)) throw error;
  return { state: "failed", message: error.message, code: error.code };
}

parentPort?.postMessage(await copy(workerData as CopyTask).catch(failed));
