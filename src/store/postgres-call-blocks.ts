import type { CallBlock } from "../records/call-block.js";
import { type CallBlockStore, createCallBlockStore, rowFromBlock, TRIM } from "./call-blocks.js";
import { all, createStatement, type Database, first, nothing, type Operation, run } from "./database.js";

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

const LAST = createStatement<object, { last: number }>(
  "last_call_sequence",
  "SELECT last FROM call_sequence WHERE id = 1",
);

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

/** Blocks by column, as PostgreSQL takes many at once. */
interface Columns {
  readonly application_ids: readonly string[];
  readonly counts: readonly number[];
  readonly first_ats: readonly number[];
  readonly last_ats: readonly number[];
  readonly calls: readonly string[];
}

function* append(blocks: readonly CallBlock[], maxCalls: number): Operation<number> {
  const last = (yield* first(TAKE_SEQUENCES, { blocks: blocks.length }))?.last ?? 0;
  const columns = columnsFrom(blocks);
  const written = yield* all(ADD, { ...columns, before: last - blocks.length });
  yield* run(TRIM_RINGS, { application_ids: columns.application_ids, max_calls: maxCalls, limit: TRIM });
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
