import type { CallBlock } from "../records/call-block.js";
import type { BlockFilter, CallStore, StoredBlock } from "../records/call-store.js";
import { all, createStatement, type Database, first, type Operation, run } from "./database.js";

/** Records of calls, as the deletion of an application needs them as well. */
export interface CallBlockStore extends CallStore {
  /** Deletes blocks of an application; at most `limit`. Resolves to how many. */
  deleteOf(applicationId: string, limit: number): Promise<number>;
}

/** What SQLite, which keeps blocks in a file of their own, and PostgreSQL do differently. */
export interface CallBlockOptions {
  /**
   * Uses the database that has the blocks.
   *
   * @param ifNone what there is without one; where it is left out, one is made.
   */
  use<T>(work: (database: Database) => Promise<T>, ifNone?: { readonly answer: T }): Promise<T>;
  readonly append: CallStore["append"];
  /** The number that was given last. */
  lastSequence(): Operation<number>;
}

/** Opens the table of blocks. */
export function createCallBlockStore({ use, append, lastSequence }: CallBlockOptions): CallBlockStore {
  const read = <T>(answer: T, operation: () => Operation<T>) => use((database) => database.read(operation), { answer });
  const remove = (operation: () => Operation<number>) => use((database) => database.write(operation), { answer: 0 });
  return {
    append,
    list: (filter) => read([], () => list(filter)),
    listAfter: (sequence, limit) => read([], () => blocks(all(LIST_AFTER, { sequence, limit }))),
    lastSequence: () => read(0, lastSequence),
    findBlock: (callId, startedAt) => read(undefined, () => find(callId, startedAt)),
    deleteBefore: (time, limit) => remove(() => run(DELETE_BEFORE, { time, limit })),
    deleteOf: (application_id, limit) => remove(() => run(DELETE_OF, { application_id, limit })),
  };
}

/** A row of `call_blocks`. */
interface CallBlockRow {
  readonly sequence: number;
  readonly application_id: string;
  readonly count: number;
  readonly first_at: number;
  readonly last_at: number;
  readonly calls: string;
}

/** Its columns, but for the one that only deleting looks at. */
const COLUMNS = "sequence, application_id, count, first_at, last_at, calls";

const LIST = createStatement<{ before: number; limit: number }, CallBlockRow>(
  "list_call_blocks",
  `SELECT ${COLUMNS} FROM call_blocks WHERE sequence < :before ORDER BY sequence DESC LIMIT :limit`,
);

const LIST_OF_ONE = createStatement<{ application_id: string; before: number; limit: number }, CallBlockRow>(
  "list_call_blocks_of_application",
  `SELECT ${COLUMNS} FROM call_blocks WHERE application_id = :application_id AND sequence < :before
   ORDER BY sequence DESC LIMIT :limit`,
);

const LIST_AFTER = createStatement<{ sequence: number; limit: number }, CallBlockRow>(
  "list_call_blocks_after",
  `SELECT ${COLUMNS} FROM call_blocks WHERE sequence > :sequence ORDER BY sequence LIMIT :limit`,
);

/** By the time that a call's id holds: only the text of blocks that may have it is looked through. */
const FIND = createStatement<{ call_id: string; time: number; until: number }, CallBlockRow>(
  "find_call_block",
  `SELECT ${COLUMNS} FROM call_blocks
   WHERE last_at BETWEEN :time AND :until AND first_at <= :time AND instr(calls, :call_id) > 0 LIMIT 1`,
);

const DELETE_BEFORE = createStatement<{ time: number; limit: number }>(
  "delete_old_call_blocks",
  `DELETE FROM call_blocks WHERE sequence IN
     (SELECT sequence FROM call_blocks WHERE last_at < :time ORDER BY last_at LIMIT :limit)`,
);

const DELETE_OF = createStatement<{ application_id: string; limit: number }>(
  "delete_call_blocks_of_application",
  `DELETE FROM call_blocks WHERE sequence IN
     (SELECT sequence FROM call_blocks WHERE application_id = :application_id ORDER BY sequence LIMIT :limit)`,
);

/**
 * When a call has left at the latest, behind its beginning: within the longest deadline and what follows it, or, as a
 * stream, within a day. Each of them is looked through for a call, since most are found in the first.
 */
const CALL_SPANS_MS = [300_000, 90_000_000] as const;

function list({ applicationId, beforeSequence, limit }: BlockFilter): Operation<StoredBlock[]> {
  const before = beforeSequence ?? Number.MAX_SAFE_INTEGER;
  return blocks(
    applicationId === undefined
      ? all(LIST, { before, limit })
      : all(LIST_OF_ONE, { application_id: applicationId, before, limit }),
  );
}

function* find(callId: string, startedAt: number): Operation<StoredBlock | undefined> {
  for (const spanMs of CALL_SPANS_MS) {
    const row = yield* first(FIND, { call_id: callId, time: startedAt, until: startedAt + spanMs });
    if (row !== undefined) return blockFromRow(row);
  }
  return undefined;
}

function* blocks(rows: Operation<CallBlockRow[]>): Operation<StoredBlock[]> {
  return (yield* rows).map(blockFromRow);
}

/** The block that a row tells of. */
function blockFromRow({ sequence, application_id, count, first_at, last_at, calls }: CallBlockRow): StoredBlock {
  return { sequence, applicationId: application_id, count, firstAt: first_at, lastAt: last_at, calls };
}

/** What is written of a block. */
export function rowFromBlock({ applicationId, count, firstAt, lastAt, calls }: CallBlock) {
  return { application_id: applicationId, count, first_at: firstAt, last_at: lastAt, calls };
}

/** Blocks deleted each time one is written: more than come, so that a smaller ring is soon reached. */
export const TRIM = 20;
