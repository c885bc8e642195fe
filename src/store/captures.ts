import type { CaptureStore, SealedCapture } from "../records/capture-store.js";
import { createStatement, type Database, first, type Operation, run } from "./database.js";

/**
 * Serializes writers, so that each counts the captures of those before it. Inserts that refer to the row need not wait.
 */
const LOCK = createStatement<{ applicationId: string }, unknown>(
  "SELECT id FROM applications WHERE id = :application_id FOR NO KEY UPDATE",
);

const COUNT = createStatement<{ applicationId: string; captureUntil: number }, { count: number }>(`
   SELECT count(*) AS count FROM call_captures
   WHERE application_id = :application_id AND capture_until = :capture_until`);

const ADD = createStatement<SealedCapture>(`
   INSERT INTO call_captures (id, application_id, capture_until, content, created_at)
   VALUES (:call_id, :application_id, :capture_until, :content, :created_at)`);

const FIND = createStatement<{ id: string }, SealedCapture>(`
   SELECT id AS call_id, application_id, capture_until, content, created_at FROM call_captures WHERE id = :id`);

const DELETE_BEFORE = createStatement<{ time: number; limit: number }>(`DELETE FROM call_captures WHERE id IN
     (SELECT id FROM call_captures WHERE created_at < :time ORDER BY created_at LIMIT :limit)`);

/** Debug captures of calls. */
export function createCaptureStore(database: Database): CaptureStore {
  return {
    add: (capture, maxCalls) => database.write(() => add(capture, maxCalls)),
    find: (id) => database.read(() => first(FIND, { id })),
    deleteBefore: (time, limit) => database.write(() => run(DELETE_BEFORE, { time, limit })),
  };
}

function* add(capture: SealedCapture, maxCalls: number): Operation<boolean> {
  if ((yield* first(LOCK, capture)) === undefined) return false;
  if (((yield* first(COUNT, capture))?.count ?? 0) >= maxCalls) return false;
  yield* run(ADD, capture);
  return true;
}
