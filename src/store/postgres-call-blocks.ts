import type { CallBlock } from "../records/call-block.js";
import type { CallStore } from "../records/call-store.js";
import { BLOCK_COLUMNS, blockFromRow, CALL_SPANS_MS, type CallBlockRow, rowFromBlock, TRIM } from "./call-blocks.js";
import { createStatement, type Queries, type Session } from "./postgres-session.js";

/** One writer at a time gets here: behind it, the row is free again when what it wrote can be seen. */
const TAKE_SEQUENCES = createStatement<{ blocks: number }, { last: number }>(
  "take_call_sequences",
  "UPDATE call_sequence SET last = last + :blocks::bigint WHERE id = 1 RETURNING last",
);

/** All blocks at once, each of another application: while they are written, other writers wait. */
const ADD = createStatement<Columns & { before: number }, { count: number }>(
  "add_call_blocks",
  `INSERT INTO call_blocks (sequence, application_id, position, count, first_at, last_at, calls)
   SELECT :before::bigint + added.place, applications.id, coalesce((
       SELECT earlier.position + earlier.count FROM call_blocks AS earlier WHERE earlier.application_id = applications.id
       ORDER BY earlier.sequence DESC LIMIT 1), 0), added.count, added.first_at, added.last_at, added.calls
   FROM unnest(:application_ids::text[], :counts::bigint[], :first_ats::bigint[], :last_ats::bigint[], :calls::text[])
     WITH ORDINALITY AS added (application_id, count, first_at, last_at, calls, place)
   JOIN applications ON applications.id = added.application_id
   RETURNING count`,
);

const TRIM_RINGS = createStatement<{ application_ids: readonly string[]; max_calls: number; limit: number }>(
  "trim_call_rings",
  `DELETE FROM call_blocks WHERE sequence IN (
     SELECT oldest.sequence FROM unnest(:application_ids::text[]) AS written (application_id)
     CROSS JOIN LATERAL (
       SELECT position + count AS total FROM call_blocks WHERE application_id = written.application_id
       ORDER BY sequence DESC LIMIT 1) AS newest
     CROSS JOIN LATERAL (
       SELECT sequence, position FROM call_blocks WHERE application_id = written.application_id
       ORDER BY sequence LIMIT :limit) AS oldest
     WHERE oldest.position < newest.total - :max_calls::bigint)`,
);

const LIST = createStatement<{ before: number; limit: number }, CallBlockRow>(
  "list_call_blocks",
  `SELECT ${BLOCK_COLUMNS} FROM call_blocks WHERE sequence < :before ORDER BY sequence DESC LIMIT :limit`,
);

const LIST_OF_ONE = createStatement<{ application_id: string; before: number; limit: number }, CallBlockRow>(
  "list_call_blocks_of_application",
  `SELECT ${BLOCK_COLUMNS} FROM call_blocks WHERE application_id = :application_id AND sequence < :before
   ORDER BY sequence DESC LIMIT :limit`,
);

const LIST_AFTER = createStatement<{ sequence: number; limit: number }, CallBlockRow>(
  "list_call_blocks_after",
  `SELECT ${BLOCK_COLUMNS} FROM call_blocks WHERE sequence > :sequence ORDER BY sequence LIMIT :limit`,
);

const LAST = createStatement<object, { last: number }>(
  "last_call_sequence",
  "SELECT last FROM call_sequence WHERE id = 1",
);

const FIND = createStatement<{ call_id: string; time: number; until: number }, CallBlockRow>(
  "find_call_block",
  `SELECT ${BLOCK_COLUMNS} FROM call_blocks
   WHERE last_at BETWEEN :time AND :until AND first_at <= :time AND strpos(calls, :call_id) > 0 LIMIT 1`,
);

const DELETE_BEFORE = createStatement<{ time: number; limit: number }>(
  "delete_old_call_blocks",
  `DELETE FROM call_blocks WHERE sequence IN
     (SELECT sequence FROM call_blocks WHERE last_at < :time ORDER BY last_at, sequence LIMIT :limit)`,
);

/** Blocks by column, as PostgreSQL takes many at once. */
interface Columns {
  readonly application_ids: readonly string[];
  readonly counts: readonly number[];
  readonly first_ats: readonly number[];
  readonly last_ats: readonly number[];
  readonly calls: readonly string[];
}

/** Records of calls in PostgreSQL. */
export function createPostgresCallStore(session: Session): CallStore {
  return {
    append: (blocks, maxCalls) => session.write((queries) => append(queries, blocks, maxCalls)),
    async list({ applicationId, beforeSequence: before = Number.MAX_SAFE_INTEGER, limit }) {
      const rows = await session.read(({ all }) =>
        applicationId === undefined
          ? all(LIST, { before, limit })
          : all(LIST_OF_ONE, { application_id: applicationId, before, limit }),
      );
      return rows.map(blockFromRow);
    },
    listAfter: async (sequence, limit) =>
      (await session.read(({ all }) => all(LIST_AFTER, { sequence, limit }))).map(blockFromRow),
    lastSequence: async () => (await session.read(({ first }) => first(LAST, {})))?.last ?? 0,
    findBlock: (callId, startedAt) => session.read((queries) => find(queries, callId, startedAt)),
    deleteBefore: (time, limit) => session.write(({ run }) => run(DELETE_BEFORE, { time, limit })),
  };
}

async function append({ first, all, run }: Queries, blocks: readonly CallBlock[], maxCalls: number): Promise<number> {
  const last = (await first(TAKE_SEQUENCES, { blocks: blocks.length }))?.last ?? 0;
  const columns = columnsFrom(blocks);
  const written = await all(ADD, { ...columns, before: last - blocks.length });
  await run(TRIM_RINGS, { application_ids: columns.application_ids, max_calls: maxCalls, limit: TRIM });
  return written.reduce((sum, { count }) => sum + count, 0);
}

function columnsFrom(blocks: readonly CallBlock[]): Columns {
  const rows = blocks.map(rowFromBlock);
  return {
    application_ids: rows.map((row) => row.application_id),
    counts: rows.map((row) => row.count),
    first_ats: rows.map((row) => row.first_at),
    last_ats: rows.map((row) => row.last_at),
    calls: rows.map((row) => row.calls),
  };
}

async function find({ first }: Queries, callId: string, startedAt: number) {
  for (const spanMs of CALL_SPANS_MS) {
    const row = await first(FIND, { call_id: callId, time: startedAt, until: startedAt + spanMs });
    if (row !== undefined) return blockFromRow(row);
  }
  return undefined;
}
