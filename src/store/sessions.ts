import type { SessionStore } from "../model/audit.js";
import { writeAudit } from "./audit-records.js";
import { createStatement, type Database, first, run } from "./database.js";

/** Sessions of the console that were ended before they expired; kept until long after they would have expired. */
export const ENDED_SESSIONS_TABLE = `CREATE TABLE ended_sessions (
  id TEXT NOT NULL PRIMARY KEY,
  expires_at BIGINT NOT NULL
);
CREATE INDEX ended_sessions_by_end ON ended_sessions (expires_at);`;

/** Does nothing if it is already ended. */
const END = createStatement<{ id: string; endsAt: number }>(
  "INSERT INTO ended_sessions (id, expires_at) VALUES (:id, :ends_at) ON CONFLICT (id) DO NOTHING",
);

const FIND = createStatement<{ id: string }, { id: string }>("SELECT id FROM ended_sessions WHERE id = :id");

/**
 * How long entries are kept after the session's expiry, in milliseconds. Relays delete by their own clocks, so one
 * whose clock is behind by less than this still refuses the session.
 */
const KEPT_MS = 7 * 86_400_000;

/** Deletes entries of sessions that expired long ago. */
const REMOVE_OVER = createStatement<{ before: number }>("DELETE FROM ended_sessions WHERE expires_at <= :before");

/** Sessions of the console that were ended by signing out. */
export function createSessionStore(database: Database): SessionStore {
  return {
    end: ({ id, endsAt }, now, audit) =>
      database.write(function* () {
        const isNew = (yield* run(END, { id, endsAt })) > 0;
        if (isNew) yield* writeAudit(audit);
        yield* run(REMOVE_OVER, { before: now - KEPT_MS });
        return isNew;
      }),
    isEnded: async (id) => (await database.read(() => first(FIND, { id }))) !== undefined,
  };
}
