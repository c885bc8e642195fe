import { existsSync } from "node:fs";
import type Database from "better-sqlite3";
import { RelayError } from "../errors.js";
import type { BlockFilter, CallStore } from "../records/call-store.js";
import { type Attempt, createAttempt } from "./attempt.js";
import { type CallBlocks, prepareCallBlocks } from "./call-blocks.js";
import { CALLS_MIGRATION_1 } from "./calls-migration-1.js";
import { type DatabaseKind, openDatabase } from "./open-database.js";

/** Records of calls in SQLite. Operations also reject with StoreOpenError, when the file cannot be opened. */
export interface CallsFile extends CallStore {
  /** Deletes blocks of an application; at most `limit`. Resolves to how many. */
  deleteOf(applicationId: string, limit: number): Promise<number>;
  close(): void;
}

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

/**
 * Keeps records in a file beside the database, `relay.db-calls`: writing them makes no other process read its connections
 * again, keeps none from storing a token, and takes no part in backups. It is opened when it is needed: a damaged one
 * costs the records and not the service.
 *
 * @param path of the database.
 * @param exists whether there is an application of this id.
 */
export function createCallsFile(path: string, exists: (applicationId: string) => boolean): CallsFile {
  const file = createLazyFile(`${path}-calls`);
  const read = async <T>(ifNone: T, operation: (blocks: CallBlocks) => T): Promise<T> =>
    file.isThere() ? file.open(({ attempt, blocks }) => attempt.read(() => operation(blocks))) : ifNone;
  const change = async (operation: (blocks: CallBlocks) => number): Promise<number> =>
    file.isThere() ? file.open(({ attempt, blocks }) => attempt.write(() => operation(blocks))) : 0;
  return {
    append: async (all, maxCalls) => {
      const kept = all.filter(({ applicationId }) => exists(applicationId));
      if (kept.length === 0) return 0;
      await file.open(({ attempt, blocks }) => attempt.write(() => blocks.append(kept, maxCalls)));
      return kept.reduce((sum, { count }) => sum + count, 0);
    },
    list: (filter: BlockFilter) => read([], (blocks) => blocks.list(filter)),
    listAfter: (sequence, limit) => read([], (blocks) => blocks.listAfter(sequence, limit)),
    lastSequence: () => read(0, (blocks) => blocks.lastSequence()),
    findBlock: (callId, startedAt) => read(undefined, (blocks) => blocks.find(callId, startedAt)),
    deleteBefore: (time, limit) => change((blocks) => blocks.deleteBefore(time, limit)),
    deleteOf: (applicationId, limit) => change((blocks) => blocks.deleteOf(applicationId, limit)),
    close: () => file.close(),
  };
}

interface OpenFile {
  readonly db: Database.Database;
  readonly attempt: Attempt;
  readonly blocks: CallBlocks;
}

/** A file that is opened at its first use. */
function createLazyFile(path: string) {
  let opened: OpenFile | undefined;
  let failure: unknown;
  let failedAt = Number.NEGATIVE_INFINITY;
  let isClosed = false;

  function openedFile(): OpenFile {
    if (opened !== undefined) return opened;
    if (isClosed) throw new RelayError("STORE_UNAVAILABLE", "The relay is stopping. Try again.");
    if (performance.now() - failedAt < RETRY_MS) throw failure;
    try {
      const db = openDatabase(path, CALLS);
      opened = { db, attempt: createAttempt(db, { forgetAll: () => {} }), blocks: prepareCallBlocks(db) };
      return opened;
    } catch (error) {
      failure = error;
      failedAt = performance.now();
      throw error;
    }
  }

  return {
    isThere: () => opened !== undefined || existsSync(path),
    open: async <T>(use: (file: OpenFile) => Promise<T>): Promise<T> => use(openedFile()),
    close() {
      isClosed = true;
      opened?.db.close();
    },
  };
}
