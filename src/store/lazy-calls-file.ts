import type Database from "better-sqlite3";
import { RelayError } from "../model/errors.js";
import { type Attempt, createAttempt } from "./attempt.js";
import { type CallBlocks, prepareCallBlocks } from "./call-blocks.js";
import { CALLS_MIGRATION_1 } from "./calls-migration-1.js";
import { type DatabaseKind, openDatabase } from "./open-database.js";
import { identityOf, isDamage, moveAside } from "./sqlite-error.js";

/**
 * NORMAL: a power loss may cost the last seconds of records and nothing else, and no call waits for a disk. What is
 * deleted is overwritten where that takes no further writing (FAST); soon the ring takes its place anyway.
 */
const CALLS: DatabaseKind = {
  pragmas: [
    ["trusted_schema", "OFF", 0],
    ["secure_delete", "FAST", 2],
    ["journal_mode", "WAL", "wal"],
    ["synchronous", "NORMAL", 1],
  ],
  migrations: [CALLS_MIGRATION_1],
  // Calls are served meanwhile, and the records can wait.
  startTimeoutMs: 100,
  busyTimeoutMs: 5,
};

/** How long a file that could not be opened is left alone, in milliseconds. */
const RETRY_MS = 30_000;

const UNUSABLE = "The records of calls cannot be opened. The operator must check the relay's database folder.";

/** The open file. */
interface OpenCalls {
  readonly attempt: Attempt;
  readonly blocks: CallBlocks;
}

/** A file that is opened when it is needed, and made when there is something to write. */
export interface LazyCallsFile {
  /**
   * Runs an operation on the file, or on a new one when that turns out to be damaged.
   *
   * @param ifNone what there is without a file; where it is left out, one is made.
   */
  use<T>(operation: (calls: OpenCalls) => Promise<T>, ifNone?: { readonly answer: T }): Promise<T>;
  close(): void;
}

/** @param onDamaged hears where a damaged file was moved to. */
export function createLazyCallsFile(path: string, onDamaged: (aside: string) => void): LazyCallsFile {
  return new LazyFile(path, onDamaged);
}

class LazyFile implements LazyCallsFile {
  readonly #path: string;
  readonly #onDamaged: (aside: string) => void;
  #opened: (OpenCalls & { readonly db: Database.Database }) | undefined;
  /** Of the file that was opened, or could not be. */
  #identity: string | undefined;
  #failure: unknown;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(path: string, onDamaged: (aside: string) => void) {
    this.#path = path;
    this.#onDamaged = onDamaged;
  }

  async use<T>(operation: (calls: OpenCalls) => Promise<T>, ifNone?: { readonly answer: T }): Promise<T> {
    try {
      return await this.#tryOnce(operation, ifNone);
    } catch (error) {
      if (!isDamage(error) || !this.#replace()) throw error;
      return this.#tryOnce(operation, ifNone);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#letGo();
  }

  async #tryOnce<T>(operation: (calls: OpenCalls) => Promise<T>, ifNone?: { readonly answer: T }): Promise<T> {
    const identity = identityOf(this.#path);
    // Another process has moved it aside, or somebody has deleted it.
    if (identity !== this.#identity) this.#letGo();
    if (identity === undefined && ifNone !== undefined) return ifNone.answer;
    return operation(this.#openedFile());
  }

  #openedFile(): OpenCalls {
    if (this.#isClosed) throw new RelayError("STORE_UNAVAILABLE", "The relay is stopping. Try again.");
    if (this.#opened !== undefined) return this.#opened;
    if (performance.now() - this.#failedAt < RETRY_MS) throw this.#failure;
    try {
      this.#identity = identityOf(this.#path);
      const db = openDatabase(this.#path, CALLS);
      this.#identity = identityOf(this.#path);
      this.#opened = { db, attempt: createAttempt(db, { forgetAll: () => {} }), blocks: prepareCallBlocks(db) };
      return this.#opened;
    } catch (error) {
      this.#failure = new RelayError("STORE_UNAVAILABLE", UNUSABLE, { cause: error });
      this.#failedAt = performance.now();
      throw this.#failure;
    }
  }

  /** False when the damaged file must stay where it is. */
  #replace(): boolean {
    const aside = `${this.#path}-damaged`;
    try {
      if (moveAside(this.#path, aside, this.#identity)) this.#onDamaged(aside);
    } catch {
      // The folder cannot be written. What is thrown instead says that the file is damaged.
      return false;
    }
    this.#letGo();
    return true;
  }

  #letGo(): void {
    this.#opened?.db.close();
    this.#opened = undefined;
    this.#failedAt = Number.NEGATIVE_INFINITY;
  }
}
