import type { AuditEntry, AuditRecord, AuditStore } from "../model/audit.js";
import { all, createStatement, type Database, type Operation, run } from "./database.js";

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
