import { setTimeout as delay } from "node:timers/promises";
import type Database from "better-sqlite3";
import { isBusy, storeErrorFrom } from "./sqlite-error.js";

/** Pauses before the second, third and fourth try, in milliseconds: the event loop serves other calls meanwhile. */
const WAITS_MS = [10, 25, 50];

/** Runs operations on the database; rejects with RelayError STORE_UNAVAILABLE when it cannot be used. */
export interface Attempt {
  /** Runs one read. */
  read<T>(operation: () => T): Promise<T>;
  /** Runs one transaction that takes the write lock at its start (threats A05). */
  write<T>(operation: () => T): Promise<T>;
}

/** Tries at once, and again a few times after short pauses while another process holds the lock (threats A04). */
export function createAttempt(db: Database.Database): Attempt {
  const transaction = db.transaction((operation: () => unknown) => operation());
  const attempt = async <T>(operation: () => T): Promise<T> => {
    for (let tries = 0; ; tries += 1) {
      try {
        return operation();
      } catch (error) {
        const waitMs = isBusy(error) ? WAITS_MS[tries] : undefined;
        if (waitMs === undefined) throw storeErrorFrom(error, db.open);
        await delay(waitMs);
      }
    }
  };
  return {
    read: attempt,
    write: <T>(operation: () => T) => attempt(() => transaction.immediate(operation) as T),
  };
}
