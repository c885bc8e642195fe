import type Database from "better-sqlite3";
import type { CallBlock } from "../records/call-block.js";
import type { BlockFilter, StoredBlock } from "../records/call-store.js";

/** The statements on `call_blocks` in SQLite. */
export interface CallBlocks {
  append(blocks: readonly CallBlock[], maxCalls: number): void;
  list(filter: BlockFilter): StoredBlock[];
  listAfter(sequence: number, limit: number): StoredBlock[];
  lastSequence(): number;
  find(callId: string, startedAt: number): StoredBlock | undefined;
  deleteBefore(time: number, limit: number): number;
  deleteOf(applicationId: string, limit: number): number;
}

/** Prepares them; `append()` is to be called in a transaction. */
export function prepareCallBlocks(db: Database.Database): CallBlocks {
  const ended = db.prepare<[number, number]>(`
    DELETE FROM call_blocks WHERE sequence IN (
      SELECT sequence FROM call_blocks WHERE last_at < ? ORDER BY last_at LIMIT ?)`);
  const all = db.prepare<[string, number]>(`
    DELETE FROM call_blocks WHERE sequence IN (SELECT sequence FROM call_blocks WHERE application_id = ? LIMIT ?)`);
  const after = db.prepare<[number, number], CallBlockRow>(
    `SELECT ${BLOCK_COLUMNS} FROM call_blocks WHERE sequence > ? ORDER BY sequence LIMIT ?`,
  );
  // The row outlives the blocks: numbers go on behind those that were deleted.
  const last = db.prepare<[], number>("SELECT seq FROM sqlite_sequence WHERE name = 'call_blocks'").pluck();
  return {
    append: prepareAppend(db),
    list: prepareList(db),
    listAfter: (sequence, limit) => after.all(sequence, limit).map(blockFromRow),
    lastSequence: () => last.get() ?? 0,
    find: prepareFind(db),
    deleteBefore: (time, limit) => ended.run(time, limit).changes,
    deleteOf: (applicationId, limit) => all.run(applicationId, limit).changes,
  };
}

function prepareAppend(db: Database.Database) {
  const end = db
    .prepare<[string], number>(
      "SELECT position + count FROM call_blocks WHERE application_id = ? ORDER BY sequence DESC LIMIT 1",
    )
    .pluck();
  const insert = db.prepare<[ReturnType<typeof rowFromBlock> & { position: number }]>(`
    INSERT INTO call_blocks (application_id, position, count, first_at, last_at, calls)
    VALUES (:application_id, :position, :count, :first_at, :last_at, :calls)`);
  const trim = db.prepare<[string, number, number]>(`
    DELETE FROM call_blocks WHERE sequence IN (
      SELECT sequence FROM (
        SELECT sequence, position FROM call_blocks WHERE application_id = ? ORDER BY sequence LIMIT ?
      ) WHERE position < ?)`);
  return (blocks: readonly CallBlock[], maxCalls: number): void => {
    for (const block of blocks) {
      const position = end.get(block.applicationId) ?? 0;
      insert.run({ ...rowFromBlock(block), position });
      trim.run(block.applicationId, TRIM, position + block.count - maxCalls);
    }
  };
}

function prepareList(db: Database.Database) {
  const newest = (where: string) =>
    db.prepare<[{ application_id: string | undefined; before: number; limit: number }], CallBlockRow>(
      `SELECT ${BLOCK_COLUMNS} FROM call_blocks WHERE ${where} sequence < :before ORDER BY sequence DESC LIMIT :limit`,
    );
  const ofAll = newest("");
  const ofOne = newest("application_id = :application_id AND");
  return ({ applicationId, beforeSequence, limit }: BlockFilter): StoredBlock[] => {
    const statement = applicationId === undefined ? ofAll : ofOne;
    const before = beforeSequence ?? Number.MAX_SAFE_INTEGER;
    return statement.all({ application_id: applicationId, before, limit }).map(blockFromRow);
  };
}

/** By the time that its id holds: only the text of blocks that may have it is looked through. */
function prepareFind(db: Database.Database) {
  const statement = db.prepare<[{ call_id: string; time: number; until: number }], CallBlockRow>(`
    SELECT ${BLOCK_COLUMNS} FROM call_blocks
    WHERE last_at BETWEEN :time AND :until AND first_at <= :time AND instr(calls, :call_id) > 0 LIMIT 1`);
  return (callId: string, startedAt: number): StoredBlock | undefined => {
    for (const spanMs of CALL_SPANS_MS) {
      const row = statement.get({ call_id: callId, time: startedAt, until: startedAt + spanMs });
      if (row !== undefined) return blockFromRow(row);
    }
    return undefined;
  };
}

/** A row of `call_blocks`, in SQLite and in PostgreSQL alike. */
export interface CallBlockRow {
  readonly sequence: number;
  readonly application_id: string;
  readonly count: number;
  readonly first_at: number;
  readonly last_at: number;
  readonly calls: string;
}

/** Its columns, but for the one that only deleting looks at. */
export const BLOCK_COLUMNS = "sequence, application_id, count, first_at, last_at, calls";

/** Blocks deleted each time one is written: more than come, so that a smaller ring is soon reached. */
export const TRIM = 20;

/**
 * When a call has left at the latest, behind its beginning: within the longest deadline and what follows it, or, as a
 * stream, within a day. Each of them is looked through for a call, since most are found in the first.
 */
export const CALL_SPANS_MS = [300_000, 90_000_000] as const;

/** The block that a row tells of. */
export function blockFromRow({ sequence, application_id, count, first_at, last_at, calls }: CallBlockRow): StoredBlock {
  return { sequence, applicationId: application_id, count, firstAt: first_at, lastAt: last_at, calls };
}

/** What is written of a block. */
export function rowFromBlock({ applicationId, count, firstAt, lastAt, calls }: CallBlock) {
  return { application_id: applicationId, count, first_at: firstAt, last_at: lastAt, calls };
}
