import type Database from "better-sqlite3";
import type { CaptureStore, SealedCapture } from "../records/capture-store.js";
import type { Attempt } from "./attempt.js";

/** A row of `call_captures`, in SQLite and in PostgreSQL alike. */
export interface CaptureRow {
  readonly id: string;
  readonly application_id: string;
  readonly capture_until: number;
  readonly content: Uint8Array;
  readonly created_at: number;
}

/** Captures in SQLite. */
export function createCaptureStore(db: Database.Database, attempt: Attempt): CaptureStore {
  const add = prepareAdd(db);
  const select = db.prepare<[string], CaptureRow>("SELECT * FROM call_captures WHERE id = ?");
  const ended = db.prepare<[number, number]>(`
    DELETE FROM call_captures WHERE id IN (
      SELECT id FROM call_captures WHERE created_at < ? ORDER BY created_at LIMIT ?)`);
  const find = (callId: string): SealedCapture | undefined => {
    const row = select.get(callId);
    return row && captureFromRow(row);
  };
  return {
    add: (capture, maxCalls) => attempt.write(() => add(capture, maxCalls)),
    find: (callId) => attempt.read(() => find(callId)),
    deleteBefore: (time, limit) => attempt.write(() => ended.run(time, limit).changes),
  };
}

function prepareAdd(db: Database.Database) {
  const insert = db.prepare<[CaptureRow & { max_calls: number }]>(`
    INSERT INTO call_captures (id, application_id, capture_until, content, created_at)
    SELECT :id, :application_id, :capture_until, :content, :created_at
    WHERE EXISTS (SELECT 1 FROM applications WHERE id = :application_id)
      AND :max_calls > (
        SELECT count(*) FROM call_captures WHERE application_id = :application_id AND capture_until = :capture_until)`);
  return (capture: SealedCapture, maxCalls: number): boolean =>
    insert.run({ ...rowFromCapture(capture), max_calls: maxCalls }).changes > 0;
}

/** The capture that a row tells of. */
export function captureFromRow({ id, application_id, capture_until, content, created_at }: CaptureRow): SealedCapture {
  return { callId: id, applicationId: application_id, captureUntil: capture_until, content, createdAt: created_at };
}

/** What is written of a capture. */
export function rowFromCapture(capture: SealedCapture): CaptureRow {
  const { callId: id, applicationId, captureUntil, content, createdAt } = capture;
  return { id, application_id: applicationId, capture_until: captureUntil, content, created_at: createdAt };
}
