import type { BlockFilter, CallStore } from "../records/call-store.js";
import type { CallBlocks } from "./call-blocks.js";
import { createLazyCallsFile } from "./lazy-calls-file.js";

/** Records of calls in SQLite. */
export interface CallsFile extends CallStore {
  /** Deletes blocks of an application; at most `limit`. Resolves to how many. */
  deleteOf(applicationId: string, limit: number): Promise<number>;
  close(): void;
}

/** What a file of calls needs. */
export interface CallsFileOptions {
  /** Whether there is an application of this id. */
  readonly exists: (applicationId: string) => boolean;
  /** Hears where a damaged file was moved to. */
  readonly onDamaged: (aside: string) => void;
}

/**
 * Keeps records in a file beside the database, `relay.db-calls`: writing them makes no other process read its connections
 * again, keeps none from storing a token, and takes no part in backups. A damaged one costs the records and not the
 * service, and is begun anew.
 *
 * @param path of the database.
 */
export function createCallsFile(path: string, { exists, onDamaged }: CallsFileOptions): CallsFile {
  const file = createLazyCallsFile(`${path}-calls`, onDamaged);
  const read = <T>(answer: T, operation: (blocks: CallBlocks) => T): Promise<T> =>
    file.use(({ attempt, blocks }) => attempt.read(() => operation(blocks)), { answer });
  const change = (operation: (blocks: CallBlocks) => number): Promise<number> =>
    file.use(({ attempt, blocks }) => attempt.write(() => operation(blocks)), { answer: 0 });
  return {
    append: async (all, maxCalls) => {
      const kept = all.filter(({ applicationId }) => exists(applicationId));
      if (kept.length === 0) return 0;
      await file.use(({ attempt, blocks }) => attempt.write(() => blocks.append(kept, maxCalls)));
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
