import type { AuditEntry, AuditRecord, AuditStore } from "../model/audit.js";
import { all, createStatement, type Database, type Operation, run } from "./database.js";

/** A row of `audit_records`. */
interface AuditRow {
  readonly id: string;
  readonly created_at: number;
  readonly actor: string;
  readonly method: string;
  readonly resource: string;
  readonly public_key: string;
  readonly changed_fields: string;
  readonly outcome: AuditRecord["outcome"];
}

const COLUMNS = "id, created_at, actor, method, resource, public_key, changed_fields, outcome";

const ADD = createStatement<AuditRow>(`INSERT INTO audit_records (${COLUMNS})
   VALUES (:id, :created_at, :actor, :method, :resource, :public_key, :changed_fields, :outcome)`);

const LIST = createStatement<{ before: string; limit: number }, AuditRow>(
  `SELECT ${COLUMNS} FROM audit_records WHERE id < :before ORDER BY id DESC LIMIT :limit`,
);

const LIST_OF_APPLICATION = createStatement<{ public_key: string; before: string; limit: number }, AuditRow>(`
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
        publicKey === undefined
          ? all(LIST, { before, limit })
          : all(LIST_OF_APPLICATION, { public_key: publicKey, before, limit }),
      );
      return rows.map(auditFromRow);
    },
  };
}

/** Writes an audit record, inside the transaction of the change it describes. Does nothing without an entry. */
export function* writeAudit(entry: AuditEntry | undefined, outcome: AuditRecord["outcome"] = "DONE"): Operation<void> {
  if (entry === undefined) return;
  yield* run(ADD, {
    id: entry.id,
    created_at: entry.at,
    actor: entry.actor,
    method: entry.method,
    resource: entry.resource,
    public_key: entry.publicKey,
    changed_fields: JSON.stringify(entry.changedFields),
    outcome,
  });
}

function auditFromRow(row: AuditRow): AuditRecord {
  return {
    id: row.id,
    at: row.created_at,
    actor: row.actor,
    method: row.method,
    resource: row.resource,
    publicKey: row.public_key,
    changedFields: JSON.parse(row.changed_fields) as string[],
    outcome: row.outcome,
  };
}
