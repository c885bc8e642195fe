import type { AuditEntry, AuditRecord, AuditStore, SessionStore } from "../model/audit.js";
import { all, createStatement, type Database, first, type Operation, run } from "./database.js";

/** A row of `audit_records`. */
type AuditRow = Omit<AuditRecord, "changedFields"> & { /** JSON. */ readonly changedFields: string };

const COLUMNS = "id, created_at AS at, actor, method, resource, public_key, changed_fields, outcome";

const ADD = createStatement<AuditRow>(`
   INSERT INTO audit_records (id, created_at, actor, method, resource, public_key, changed_fields, outcome)
   VALUES (:id, :at, :actor, :method, :resource, :public_key, :changed_fields, :outcome)`);

const LIST = createStatement<{ before: string; limit: number }, AuditRow>(
  `SELECT ${COLUMNS} FROM audit_records WHERE id < :before ORDER BY id DESC LIMIT :limit`,
);

const LIST_OF_APPLICATION = createStatement<{ publicKey: string; before: string; limit: number }, AuditRow>(`
   SELECT ${COLUMNS} FROM audit_records
   WHERE public_key = :public_key AND id < :before ORDER BY id DESC LIMIT :limit`);

/** Sorts after every id, since ids are hexadecimal. */
const LAST_ID = "g";

/** The audit trail. */
export function createAuditStore(database: Database): AuditStore {
  return {
    add: (record) => database.write(() => writeAudit(record, record.outcome)),
    async list({ beforeId: before = LAST_ID, publicKey, limit }) {
      const rows = await database.read(() =>
        publicKey === undefined ? all(LIST, { before, limit }) : all(LIST_OF_APPLICATION, { publicKey, before, limit }),
      );
      return rows.map((row) => ({ ...row, changedFields: JSON.parse(row.changedFields) as string[] }));
    },
  };
}

/** Writes an audit record, inside the transaction of the change it describes. Does nothing without an entry. */
export function* writeAudit(entry: AuditEntry | undefined, outcome: AuditRecord["outcome"] = "DONE"): Operation<void> {
  if (entry === undefined) return;
  yield* run(ADD, { ...entry, changedFields: JSON.stringify(entry.changedFields), outcome });
}

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
