import { setTimeout as delay } from "node:timers/promises";
import type Database from "better-sqlite3";
import type { OnOperation, RowCaches } from "./row-cache.js";
import { isBusy, storeErrorFrom } from "./sqlite-error.js";

/** Pauses before the second, third and fourth try, in milliseconds: the event loop serves other calls meanwhile. */
const WAITS_MS = [10, 25, 50];

/** Runs operations on the database; rejects with RelayError STORE_UNAVAILABLE when it cannot be used. */
export interface Attempt {
  /** Runs one read. */
  read<T>(operation: () => T): Promise<T>;
  /** Runs one read whose rows may be kept, by caches that tell of those that are not. */
  lookUp<T>(operation: () => T): Promise<T>;
  /**
   * Runs one transaction that takes the write lock at its start (threats A05).
   *
   * @param forget lets go of the rows that it changed, in the moment it is committed; default all that are kept.
   */
  write<T>(operation: () => T, forget?: () => void): Promise<T>;
}

/**
 * Tries at once, and again a few times after short pauses while another process holds the lock (threats A04).
 *
 * @param requireInPlace throws when what is written would go into a file that its name does not lead to any more.
 */
export function createAttempt(
  db: Database.Database,
  { forgetAll }: Pick<RowCaches, "forgetAll">,
  onOperation: OnOperation = () => {},
  requireInPlace: () => void = () => {},
): Attempt {
  const transaction = db.transaction((operation: () => unknown) => operation());
  const timed = <T>(kind: "read" | "write", begin: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const tell = (isFailed: boolean) => onOperation(kind, performance.now() - startedAt, isFailed);
    const result = begin();
    result.then(
      () => tell(false),
      () => tell(true),
    );
    return result;
  };
  return {
    lookUp: (operation) => attempt(operation, (error) => timed("read", () => tryAgain(db, operation, error))),
    read: (operation) => timed("read", () => attempt(operation, (error) => tryAgain(db, operation, error))),
    write(operation, forget = forgetAll) {
      const run = () => {
        requireInPlace();
        const result = transaction.immediate(operation) as ReturnType<typeof operation>;
        forget();
        // It may have been replaced in between.
        requireInPlace();
        return result;
      };
      return timed("write", () => attempt(run, (error) => tryAgain(db, run, error)));
    },
  };
}

/** No async function: nearly every operation succeeds at once, and each call makes two of them. */
function attempt<T>(operation: () => T, onFailure: (error: unknown) => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(operation());
  } catch (error) {
    return onFailure(error);
  }
}

async function tryAgain<T>(db: Database.Database, operation: () => T, failure: unknown): Promise<T> {
  let error = failure;
  for (const waitMs of WAITS_MS) {
    if (!isBusy(error)) break;
    await delay(waitMs);
    try {
      return operation();
    } catch (again) {
      error = again;
    }
  }
  throw storeErrorFrom(error, db.open);
}
