import type { CaptureStore, SealedCapture } from "../records/capture-store.js";
import { createStatement, type Database, first, type Operation, run } from "./database.js";

/** A row of `call_captures`. */
type CaptureRow = Omit<SealedCapture, "callId"> & { readonly id: string };

const COLUMNS = "id, application_id, capture_until, content, created_at";

/**
 * Serializes writers, so that each counts the captures of those before it. Inserts that refer to the row need not wait.
 */
const LOCK = createStatement<{ applicationId: string }, unknown>(
  "SELECT id FROM applications WHERE id = :application_id FOR NO KEY UPDATE",
);

const COUNT = createStatement<{ applicationId: string; captureUntil: number }, { count: number }>(`
   SELECT count(*) AS count FROM call_captures
   WHERE application_id = :application_id AND capture_until = :capture_until`);

const ADD = createStatement<CaptureRow>(
  `INSERT INTO call_captures (${COLUMNS}) VALUES (:id, :application_id, :capture_until, :content, :created_at)`,
);

const FIND = createStatement<{ id: string }, CaptureRow>(`SELECT ${COLUMNS} FROM call_captures WHERE id = :id`);

const DELETE_BEFORE = createStatement<{ time: number; limit: number }>(`DELETE FROM call_captures WHERE id IN
     (SELECT id FROM call_captures WHERE created_at < :time ORDER BY created_at LIMIT :limit)`);

/** Debug captures of calls. */
export function createCaptureStore(database: Database): CaptureStore {
  return {
    add: (capture, maxCalls) => database.write(() => add(capture, maxCalls)),
    async find(id) {
      const row = await database.read(() => first(FIND, { id }));
      return row && captureFromRow(row);
    },
    deleteBefore: (time, limit) => database.write(() => run(DELETE_BEFORE, { time, limit })),
  };
}

function* add({ callId, ...capture }: SealedCapture, maxCalls: number): Operation<boolean> {
  if ((yield* first(LOCK, capture)) === undefined) return false;
  if (((yield* first(COUNT, capture))?.count ?? 0) >= maxCalls) return false;
  yield* run(ADD, { id: callId, ...capture });
  return true;
}

function captureFromRow({ id, ...row }: CaptureRow): SealedCapture {
  return { callId: id, ...row };
}
