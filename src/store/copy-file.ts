/**
 * A worker thread that copies a SQLite database and checks the copy. SQLite does both without a pause, which takes a
 * second per gigabyte or more; in a thread, the command can still handle signals.
 */
import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { isDamage } from "./sqlite-error.js";

/** The file to copy, and the existing file to copy it to. */
export interface CopyTask {
  readonly file: string;
  readonly draft: string;
  /** How long to wait for a lock, in milliseconds. */
  readonly timeoutMs: number;
}

/** The result: a sound copy, a damaged copy of a sound database, a damaged database, or SQLite's error. */
export type CopyResult =
  | { readonly state: "whole" | "damaged copy" | "damaged database" }
  | { readonly state: "failed"; readonly message: string; readonly code: string };

async function copy({ file, draft, timeoutMs }: CopyTask): Promise<CopyResult> {
  const db = new Database(file, { fileMustExist: true, timeout: timeoutMs });
  try {
    // A read throughout the copy: SQLite's backup takes a locked database for an empty one.
    db.exec("BEGIN");
    db.pragma("user_version");
    // Copies all remaining pages in one step: a copy in several steps would restart with each commit of the service.
    await db.backup(draft, { progress: ({ remainingPages }) => remainingPages });
    if (isWhole(draft)) return { state: "whole" };
    // Pages are copied unchanged, so a damaged copy usually means a damaged database.
    return { state: isSound(db) ? "damaged copy" : "damaged database" };
  } finally {
    db.close();
  }
}

function isWhole(copied: string): boolean {
  const db = new Database(copied, { fileMustExist: true });
  try {
    // Makes it a single file, without a write-ahead log beside it.
    db.pragma("journal_mode = DELETE");
    return isSound(db);
  } finally {
    db.close();
  }
}

/** Whether a database passes SQLite's integrity check, which reads every page. */
function isSound(db: Database.Database): boolean {
  try {
    return db.pragma("integrity_check(1)", { simple: true }) === "ok";
  } catch (error) {
    if (isDamage(error)) return false;
    throw error;
  }
}

/** Turns a SQLite error into a result, since its class would be lost between threads. Other errors end the thread. */
function failed(error: unknown): CopyResult {
  if (!(error instanceof Database.SqliteError)) throw error;
  return { state: "failed", message: error.message, code: error.code };
}

parentPort?.postMessage(await copy(workerData as CopyTask).catch(failed));
