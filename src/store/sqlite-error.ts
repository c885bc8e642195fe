import { renameSync, rmSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { RelayError } from "../model/errors.js";
import { StoreOpenError } from "./database.js";

/** The message while another process holds the lock. */
export const LOCKED = "The relay's store is locked by another process. Try again.";

/** SQLite's primary codes that mean that the store cannot be used, whatever the statement. */
const UNAVAILABLE: ReadonlyMap<string, string> = new Map([
  ["SQLITE_BUSY", LOCKED],
  ["SQLITE_LOCKED", LOCKED],
  ["SQLITE_PROTOCOL", LOCKED],
  ["SQLITE_FULL", "The relay's store is full. The operator must make room on its disk."],
  ["SQLITE_READONLY", "The relay's store cannot be written to. The operator must check its files."],
  ["SQLITE_IOERR", "The relay's store cannot be read or written to. The operator must check its disk."],
  ["SQLITE_CANTOPEN", "The relay's store cannot be opened. The operator must check its files."],
  ["SQLITE_PERM", "The relay's store cannot be opened. The operator must check its files."],
  ["SQLITE_CORRUPT", "The relay's store is damaged. The operator must restore it."],
  ["SQLITE_NOTADB", "The relay's store is damaged. The operator must restore it."],
  ["SQLITE_NOMEM", "The relay's store is out of memory. Try again."],
  ["SQLITE_INTERRUPT", "The relay's store was interrupted. Try again."],
]);

/** Whether another connection holds the lock, so that a retry may work. */
export function isBusy(error: unknown): boolean {
  return UNAVAILABLE.get(primaryCodeOf(error) ?? "") === LOCKED;
}

/** Converts an error for the store's callers: STORE_UNAVAILABLE by SQLite's code; other errors are faults and stay. */
export function storeErrorFrom(error: unknown, isOpen: boolean): unknown {
  if (!isOpen) return unavailable("The relay is stopping. Try again.", error);
  if (error instanceof Database.SqliteError && error.code === "SQLITE_CONSTRAINT_FOREIGNKEY") {
    return new RelayError("INVALID_PUBLIC_KEY", "This application no longer exists.", { cause: error });
  }
  const message = UNAVAILABLE.get(primaryCodeOf(error) ?? "");
  return message === undefined ? error : unavailable(message, error);
}

/** Converts an error of opening the store to one that names the file and SQLite's or the system's code. */
export function openErrorFrom(file: string, error: unknown): StoreOpenError {
  if (error instanceof StoreOpenError) return error;
  return new StoreOpenError(file, openProblemOf(error), { cause: error });
}

/** SQLite makes room in its index at once, and has a code of its own when there is none. */
const DISK_FULL: ReadonlySet<unknown> = new Set(["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "ENOSPC"]);

function openProblemOf(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  if (code === "SQLITE_NOTADB") return "is not a SQLite database; check RELAY_DATABASE";
  if (isBusy(error)) return "is locked by another process; stop that process, or wait for it, and start again";
  if (DISK_FULL.has(code)) return "cannot be written: its disk is full; make room there";
  return `cannot be opened (${typeof code === "string" ? code : "unknown error"}); check its path, its folder and its owner`;
}

/** `SQLITE_IOERR_FSYNC` is one kind of `SQLITE_IOERR` (https://sqlite.org/rescode.html). */
function primaryCodeOf(error: unknown): string | undefined {
  return error instanceof Database.SqliteError ? error.code.split("_", 2).join("_") : undefined;
}

function unavailable(message: string, cause: unknown): RelayError {
  return new RelayError("STORE_UNAVAILABLE", message, { cause });
}

/** Suffixes of SQLite's files. WAL and index come first, so that a new database never meets those of another one. */
const SUFFIXES = ["-wal", "-shm", ""] as const;

/** Identifies the file at a path by device and inode; undefined when there is none. */
export function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev} ${stats.ino}`;
}

/** Whether an error means that the file is not a database, or is corrupt; looks at its causes as well. */
export function isDamage(error: unknown): boolean {
  if (error instanceof Database.SqliteError) return /^SQLITE_(?:CORRUPT|NOTADB)/.test(error.code);
  return error instanceof Error && error.cause !== undefined && isDamage(error.cause);
}

/**
 * Moves a damaged database out of the way, so that data may still be recovered from it; one that was moved there before
 * is deleted. Returns false, with nothing changed, when another file has taken its place. Throws the system's error
 * when it cannot be moved.
 */
export function moveAside(path: string, aside: string, identity: string | undefined): boolean {
  if (identity === undefined || identityOf(path) !== identity) return false;
  for (const suffix of SUFFIXES) {
    rmSync(aside + suffix, { force: true });
    if (identityOf(path + suffix) !== undefined) renameSync(path + suffix, aside + suffix);
  }
  return true;
}
