import { renameSync, rmSync, statSync } from "node:fs";
import Database from "better-sqlite3";

/** What SQLite keeps in files: the log and its index first, so that a new database never meets those of another one. */
const SUFFIXES = ["-wal", "-shm", ""] as const;

/** Which file a name leads to, whoever gave it this name; undefined when there is none. */
export function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev} ${stats.ino}`;
}

/** Whether a database failed because what it holds is no database, or one that does not fit together. */
export function isDamage(error: unknown): boolean {
  if (error instanceof Database.SqliteError) return /^SQLITE_(?:CORRUPT|NOTADB)/.test(error.code);
  return error instanceof Error && error.cause !== undefined && isDamage(error.cause);
}

/**
 * Moves a damaged database out of the way, so that whoever knows how may still get something out of it; one that was
 * moved there before is deleted. False, with nothing changed, when another file has its name already. Throws the system's
 * error when it cannot be moved.
 */
export function moveAside(path: string, aside: string, identity: string | undefined): boolean {
  if (identity === undefined || identityOf(path) !== identity) return false;
  for (const suffix of SUFFIXES) {
    rmSync(aside + suffix, { force: true });
    if (identityOf(path + suffix) !== undefined) renameSync(path + suffix, aside + suffix);
  }
  return true;
}
