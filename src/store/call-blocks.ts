import type { BlockFilter, CallBlock, CallStore, StoredBlock } from "../records/call-block.js";
import type { CaptureStore, SealedCapture } from "../records/capture-store.js";
import type { UseDatabase } from "./call-figures.js";
import { all, createStatement, type Database, first, nothing, type Operation, run } from "./database.js";

/** Records of calls, with the method that deleting an application needs. */
export interface CallBlockStore extends CallStore {
  /** Deletes at most `limit` blocks of an application. Resolves to how many were deleted. */
  deleteOf(applicationId: string, limit: number): Promise<number>;
}

/** What differs between SQLite, which keeps blocks in a separate file, and PostgreSQL. */
interface CallBlockOptions {
  readonly use: UseDatabase;
  readonly append: CallStore["append"];
  /** The last sequence number that was assigned. */
  lastSequence(): Operation<number>;
}

/** Opens the table of blocks. */
export function createCallBlockStore({ use, append, lastSequence }: CallBlockOptions): CallBlockStore {
  const read = <T>(answer: T, operation: () => Operation<T>) => use((database) => database.read(operation), { answer });
  const remove = (operation: () => Operation<number>) => use((database) => database.write(operation), { answer: 0 });
  return {
    append,
    list: (filter) => read([], () => list(filter)),
    listAfter: (sequence, limit) => read([], () => all(LIST_AFTER, { sequence, limit })),
    lastSequence: () => read(0, lastSequence),
    findBlock: (callId, startedAt) => read(undefined, () => find(callId, startedAt)),
    deleteBefore: (time, limit) => remove(() => run(DELETE_BEFORE, { time, limit })),
    deleteOf: (applicationId, limit) => remove(() => run(DELETE_OF, { applicationId, limit })),
  };
}

/** The columns of `call_blocks`, except `position`, which only writing and trimming need. */
const COLUMNS = "sequence, application_id, count, first_at, last_at, calls";

interface ListBounds {
  readonly applicationId: string | undefined;
  readonly before: number;
  readonly floor: number;
  readonly start: number;
  readonly end: number;
  readonly limit: number;
}

/**
 * Selects blocks by time. The scan skips other blocks cheaply, since their large `calls` text is the last column; `+`
 * keeps the planner from an index of times. The last block scanned is always returned, so that the next scan starts
 * after it.
 */
const OF_TIME = "(+last_at >= :start AND +first_at < :end OR sequence = :floor)";
/** Most blocks that one statement scans: a SQLite statement blocks the event loop. */
const MAX_LOOKED = 500;

/** @param application selects one application's; empty for all. */
const listStatements = (application: "" | "application_id = :application_id AND") => ({
  floor: createStatement<Pick<ListBounds, "before" | "applicationId">, { floor: number | undefined }>(`
   SELECT min(sequence) AS floor FROM
     (SELECT sequence FROM call_blocks WHERE ${application} sequence < :before
      ORDER BY sequence DESC LIMIT ${MAX_LOOKED}) AS looked`),
  list: createStatement<ListBounds, StoredBlock>(`
   SELECT ${COLUMNS} FROM call_blocks WHERE ${application} sequence < :before AND sequence >= :floor AND ${OF_TIME}
   ORDER BY sequence DESC LIMIT :limit`),
});

const OF_ALL = listStatements("");
const OF_ONE = listStatements("application_id = :application_id AND");

const LIST_AFTER = createStatement<{ sequence: number; limit: number }, StoredBlock>(
  `SELECT ${COLUMNS} FROM call_blocks WHERE sequence > :sequence ORDER BY sequence LIMIT :limit`,
);

/** Narrows the search by the time in the call's id, so that only the text of blocks that may hold it is searched. */
const FIND = createStatement<{ callId: string; time: number; until: number }, StoredBlock>(`
   SELECT ${COLUMNS} FROM call_blocks
   WHERE last_at BETWEEN :time AND :until AND first_at <= :time AND instr(calls, :call_id) > 0 LIMIT 1`);

const DELETE_BEFORE = createStatement<{ time: number; limit: number }>(`DELETE FROM call_blocks WHERE sequence IN
     (SELECT sequence FROM call_blocks WHERE last_at < :time ORDER BY last_at LIMIT :limit)`);

const DELETE_OF = createStatement<{ applicationId: string; limit: number }>(`DELETE FROM call_blocks WHERE sequence IN
     (SELECT sequence FROM call_blocks WHERE application_id = :application_id ORDER BY sequence LIMIT :limit)`);

/**
 * How long after its start a call ends at the latest: within the longest deadline and some time after it, or, for a
 * stream, within a day. The spans are searched in this order, since most calls are found in the first.
 */
const CALL_SPANS_MS = [300_000, 90_000_000] as const;

function* list({ applicationId, beforeSequence, startAt, endAt, limit }: BlockFilter): Operation<StoredBlock[]> {
  const last = Number.MAX_SAFE_INTEGER;
  const before = beforeSequence ?? last;
  const statements = applicationId === undefined ? OF_ALL : OF_ONE;
  let floor: number | undefined = 0;
  if (startAt !== undefined || endAt !== undefined)
    floor = (yield* first(statements.floor, { before, applicationId }))?.floor;
  if (floor === undefined) return [];
  return yield* all(statements.list, { applicationId, before, floor, start: startAt ?? 0, end: endAt ?? last, limit });
}

function* find(callId: string, startedAt: number): Operation<StoredBlock | undefined> {
  for (const spanMs of CALL_SPANS_MS) {
    const row = yield* first(FIND, { callId, time: startedAt, until: startedAt + spanMs });
    if (row !== undefined) return row;
  }
  return undefined;
}

/**
 * Most blocks deleted per write: more than are added, so that a ring that was made smaller soon shrinks to its size.
 */
export const TRIM = 20;

/** Records of calls in PostgreSQL. */
export function createPostgresCallStore(database: Database): CallBlockStore {
  return createCallBlockStore({
    use: (work) => work(database),
    append: (blocks, maxCalls) => database.write(() => append(blocks, maxCalls), nothing),
    *lastSequence() {
      return (yield* first(LAST, {}))?.last ?? 0;
    },
  });
}

const LAST = createStatement<object, { last: number }>("SELECT last FROM call_sequence WHERE id = 1");

/** One writer at a time holds this row: it is free again once the writer's blocks are committed and visible. */
const TAKE_SEQUENCES = createStatement<{ blocks: number }, { last: number }>(
  "UPDATE call_sequence SET last = last + :blocks::bigint WHERE id = 1 RETURNING last",
);

/** Adds all blocks in one statement, each of a different application, since other writers wait meanwhile. */
const ADD = createStatement<Columns & { before: number }, { count: number }>(`
   INSERT INTO call_blocks (sequence, application_id, position, count, first_at, last_at, calls)
   SELECT :before::bigint + added.place, applications.id, coalesce((
       SELECT earlier.position + earlier.count FROM call_blocks AS earlier WHERE earlier.application_id = applications.id
       ORDER BY earlier.sequence DESC LIMIT 1), 0), added.count, added.first_at, added.last_at, added.calls
   FROM unnest(:application_ids::text[], :counts::bigint[], :first_ats::bigint[], :last_ats::bigint[], :calls::text[])
     WITH ORDINALITY AS added (application_id, count, first_at, last_at, calls, place)
   JOIN applications ON applications.id = added.application_id
   RETURNING count`);

const TRIM_RINGS = createStatement<{ applicationIds: readonly string[]; maxCalls: number; limit: number }>(`
   DELETE FROM call_blocks WHERE sequence IN (
     SELECT oldest.sequence FROM unnest(:application_ids::text[]) AS written (application_id)
     CROSS JOIN LATERAL (
       SELECT position + count AS total FROM call_blocks WHERE application_id = written.application_id
       ORDER BY sequence DESC LIMIT 1) AS newest
     CROSS JOIN LATERAL (
       SELECT sequence, position FROM call_blocks WHERE application_id = written.application_id
       ORDER BY sequence LIMIT :limit) AS oldest
     WHERE oldest.position < newest.total - :max_calls::bigint)`);

/** Blocks as one array per column, for inserting many in one PostgreSQL statement. */
interface Columns {
  readonly applicationIds: readonly string[];
  readonly counts: readonly number[];
  readonly firstAts: readonly number[];
  readonly lastAts: readonly number[];
  readonly calls: readonly string[];
}

function* append(blocks: readonly CallBlock[], maxCalls: number): Operation<number> {
  const last = (yield* first(TAKE_SEQUENCES, { blocks: blocks.length }))?.last ?? 0;
  const columns = columnsFrom(blocks);
  const written = yield* all(ADD, { ...columns, before: last - blocks.length });
  yield* run(TRIM_RINGS, { ...columns, maxCalls, limit: TRIM });
  return written.reduce((sum, { count }) => sum + count, 0);
}

function columnsFrom(blocks: readonly CallBlock[]): Columns {
  return {
    applicationIds: blocks.map(({ applicationId }) => applicationId),
    counts: blocks.map(({ count }) => count),
    firstAts: blocks.map(({ firstAt }) => firstAt),
    lastAts: blocks.map(({ lastAt }) => lastAt),
    calls: blocks.map(({ calls }) => calls),
  };
}

/**
 * Serializes writers, so that each counts the captures of those before it. Inserts that refer to the row need not wait.
 */
const LOCK_APPLICATION = createStatement<{ applicationId: string }, unknown>(
  "SELECT id FROM applications WHERE id = :application_id FOR NO KEY UPDATE",
);

const COUNT_CAPTURES = createStatement<{ applicationId: string; captureUntil: number }, { count: number }>(`
   SELECT count(*) AS count FROM call_captures
   WHERE application_id = :application_id AND capture_until = :capture_until`);

const ADD_CAPTURE = createStatement<SealedCapture>(`
   INSERT INTO call_captures (id, application_id, capture_until, content, created_at)
   VALUES (:call_id, :application_id, :capture_until, :content, :created_at)`);

const FIND_CAPTURE = createStatement<{ id: string }, SealedCapture>(`
   SELECT id AS call_id, application_id, capture_until, content, created_at FROM call_captures WHERE id = :id`);

const DELETE_CAPTURES = createStatement<{ time: number; limit: number }>(`DELETE FROM call_captures WHERE id IN
     (SELECT id FROM call_captures WHERE created_at < :time ORDER BY created_at LIMIT :limit)`);

/** Debug captures of calls. */
export function createCaptureStore(database: Database): CaptureStore {
  return {
    add: (capture, maxCalls) => database.write(() => addCapture(capture, maxCalls)),
    find: (id) => database.read(() => first(FIND_CAPTURE, { id })),
    deleteBefore: (time, limit) => database.write(() => run(DELETE_CAPTURES, { time, limit })),
  };
}

function* addCapture(capture: SealedCapture, maxCalls: number): Operation<boolean> {
  if ((yield* first(LOCK_APPLICATION, capture)) === undefined) return false;
  if (((yield* first(COUNT_CAPTURES, capture))?.count ?? 0) >= maxCalls) return false;
  yield* run(ADD_CAPTURE, capture);
  return true;
}
