import type Database from "better-sqlite3";
import type { AuditEntry, AuditFilter, AuditRecord, AuditStore } from "../model/audit.js";
import type { Attempt } from "./attempt.js";

/** A row of `audit_records`. */
export interface AuditRow {
  readonly id: string;
  readonly created_at: number;
  readonly actor: string;
  readonly method: string;
  readonly resource: string;
  readonly public_key: string;
  readonly changed_fields: string;
  readonly outcome: AuditRecord["outcome"];
}

/** Writes an entry down; called inside the transaction of the change that it tells of. Without one it does nothing. */
export type WriteAudit = (entry: AuditEntry | undefined, outcome?: AuditRecord["outcome"]) => void;

/** The audit trail in SQLite. */
export function createAuditStore(db: Database.Database, attempt: Attempt): AuditStore {
  const write = prepareWriteAudit(db);
  const list = prepareList(db);
  return {
    add: (record) => attempt.write(() => write(record, record.outcome)),
    list: (filter) => attempt.read(() => list(filter)),
  };
}

export function prepareWriteAudit(db: Database.Database): WriteAudit {
  const statement = db.prepare<[AuditRow]>(`
    INSERT INTO audit_records (id, created_at, actor, method, resource, public_key, changed_fields, outcome)
    VALUES (:id, :created_at, :actor, :method, :resource, :public_key, :changed_fields, :outcome)`);
  return (entry, outcome = "DONE") => {
    if (entry !== undefined) statement.run(rowFromAudit({ ...entry, outcome }));
  };
}

function prepareList(db: Database.Database) {
  const all = db.prepare<[string, number], AuditRow>(
    "SELECT * FROM audit_records WHERE id < ? ORDER BY id DESC LIMIT ?",
  );
  const ofApplication = db.prepare<[string, string, number], AuditRow>(
    "SELECT * FROM audit_records WHERE public_key = ? AND id < ? ORDER BY id DESC LIMIT ?",
  );
  return ({ beforeId = LAST_ID, publicKey, limit }: AuditFilter): AuditRecord[] => {
    const rows = publicKey === undefined ? all.all(beforeId, limit) : ofApplication.all(publicKey, beforeId, limit);
    return rows.map(auditFromRow);
  };
}

/** Greater than any id: those are hexadecimal. */
export const LAST_ID = "g";

export function auditFromRow(row: AuditRow): AuditRecord {
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

export function rowFromAudit(record: AuditRecord): AuditRow {
  return {
    id: record.id,
    created_at: record.at,
    actor: record.actor,
    method: record.method,
    resource: record.resource,
    public_key: record.publicKey,
    changed_fields: JSON.stringify(record.changedFields),
    outcome: record.outcome,
  };
}
