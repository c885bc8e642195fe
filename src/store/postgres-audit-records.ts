import type { AuditEntry, AuditRecord, AuditStore } from "../model/audit.js";
import { type AuditRow, auditFromRow, LAST_ID, rowFromAudit } from "./audit-records.js";
import { createStatement, type Queries, type Session } from "./postgres-session.js";

/** A row of `audit_records`: what others write is kept as bytes. */
type PostgresAuditRow = Omit<AuditRow, "actor" | "public_key"> & {
  readonly actor: Buffer;
  readonly public_key: Buffer;
};

const COLUMNS = "id, created_at, actor, method, resource, public_key, changed_fields, outcome";

const ADD = createStatement<PostgresAuditRow>(
  "add_audit_record",
  `INSERT INTO audit_records (${COLUMNS})
   VALUES (:id, :created_at, :actor, :method, :resource, :public_key, :changed_fields, :outcome)`,
);

const LIST = createStatement<{ before: string; limit: number }, PostgresAuditRow>(
  "list_audit_records",
  `SELECT ${COLUMNS} FROM audit_records WHERE id < :before ORDER BY id DESC LIMIT :limit`,
);

const LIST_OF_APPLICATION = createStatement<{ public_key: Buffer; before: string; limit: number }, PostgresAuditRow>(
  "list_audit_records_of_application",
  `SELECT ${COLUMNS} FROM audit_records
   WHERE public_key = :public_key AND id < :before ORDER BY id DESC LIMIT :limit`,
);

/** The audit trail in PostgreSQL. */
export function createPostgresAuditStore(session: Session): AuditStore {
  return {
    add: (record) => session.write((queries) => writeAudit(queries, record, record.outcome)),
    async list({ beforeId: before = LAST_ID, publicKey, limit }) {
      const rows = await session.read(({ all }) =>
        publicKey === undefined
          ? all(LIST, { before, limit })
          : all(LIST_OF_APPLICATION, { public_key: Buffer.from(publicKey), before, limit }),
      );
      return rows.map((row) =>
        auditFromRow({ ...row, actor: row.actor.toString(), public_key: row.public_key.toString() }),
      );
    },
  };
}

/** Writes an entry down; called inside the transaction of the change that it tells of. Without one it does nothing. */
export async function writeAudit(
  { run }: Queries,
  entry: AuditEntry | undefined,
  outcome: AuditRecord["outcome"] = "DONE",
): Promise<void> {
  if (entry === undefined) return;
  const row = rowFromAudit({ ...entry, outcome });
  await run(ADD, { ...row, actor: Buffer.from(row.actor), public_key: Buffer.from(row.public_key) });
}
