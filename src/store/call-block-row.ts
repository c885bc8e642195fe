import type { CallBlock } from "../records/call-block.js";
import type { StoredBlock } from "../records/call-store.js";

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
