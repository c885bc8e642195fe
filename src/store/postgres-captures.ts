import type { CaptureStore } from "../records/capture-store.js";
import { type CaptureRow, captureFromRow, rowFromCapture } from "./captures.js";
import { createStatement, type Session } from "./postgres-session.js";

const COLUMNS = "id, application_id, capture_until, content, created_at";

/** Whoever adds counts what those before have added; keys that refer to the application do not wait for it. */
const LOCK = createStatement<{ application_id: string }>(
  "lock_application_of_capture",
  "SELECT id FROM applications WHERE id = :application_id FOR NO KEY UPDATE",
);

const ADD = createStatement<CaptureRow & { max_calls: number }>(
  "add_capture",
  `INSERT INTO call_captures (${COLUMNS})
   SELECT :id::text, id, :capture_until::bigint, :content::bytea, :created_at::bigint FROM applications WHERE id = :application_id
     AND :max_calls::bigint > (
       SELECT count(*) FROM call_captures
       WHERE application_id = :application_id AND capture_until = :capture_until::bigint)`,
);

const FIND = createStatement<{ id: string }, CaptureRow>(
  "find_capture",
  `SELECT ${COLUMNS} FROM call_captures WHERE id = :id`,
);

const DELETE_BEFORE = createStatement<{ time: number; limit: number }>(
  "delete_old_captures",
  `DELETE FROM call_captures WHERE id IN
     (SELECT id FROM call_captures WHERE created_at < :time ORDER BY created_at, id LIMIT :limit)`,
);

/** Captures in PostgreSQL. */
export function createPostgresCaptureStore(session: Session): CaptureStore {
  return {
    async add(capture, maxCalls) {
      const row = rowFromCapture(capture);
      const added = await session.write(async ({ run }) => {
        await run(LOCK, { application_id: row.application_id });
        return run(ADD, { ...row, max_calls: maxCalls });
      });
      return added > 0;
    },
    async find(callId) {
      const row = await session.read(({ first }) => first(FIND, { id: callId }));
      return row && captureFromRow(row);
    },
    deleteBefore: (time, limit) => session.write(({ run }) => run(DELETE_BEFORE, { time, limit })),
  };
}
