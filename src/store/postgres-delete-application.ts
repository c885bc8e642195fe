import type { Application } from "../applications/application.js";
import type { ChangeOptions } from "../model/change-options.js";
import { writeAudit } from "./postgres-audit-records.js";
import { requireCurrentApplication } from "./postgres-lock-application.js";
import type { Queries, Session } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

/** Rows deleted in one transaction, so that none of them is long. */
const BATCH = 200;

const DISABLE = createStatement<{ public_key: Buffer }, { id: string }>(
  "disable_application",
  "UPDATE applications SET state = 'DISABLED' WHERE public_key = :public_key RETURNING id",
);

const TABLES = [
  ["connections", "id"],
  ["tickets", "id"],
  ["call_captures", "id"],
  ["call_blocks", "sequence"],
] as const;

const DELETE_SOME = TABLES.map(([table, key]) =>
  createStatement<{ id: string; batch: number }>(
    `delete_some_${table}`,
    `DELETE FROM ${table} WHERE ${key} IN
       (SELECT ${key} FROM ${table} WHERE application_id = :id ORDER BY ${key} LIMIT :batch)`,
  ),
);

/** Rows that came meanwhile go with it (ON DELETE CASCADE). */
const DELETE = createStatement<{ id: string }>("delete_application", "DELETE FROM applications WHERE id = :id");

/**
 * Deletes an application with its connections and the records of its calls. It is disabled first, so that no call comes
 * through from then on, and emptied in short transactions; a process that dies in between leaves a disabled application to
 * delete again. The audit trail has it from the first of them on.
 */
export async function deleteApplication(
  session: Session,
  publicKey: string,
  options: ChangeOptions<Application>,
): Promise<boolean> {
  const id = await session.write((queries) => begin(queries, publicKey, options));
  if (id === undefined) return false;
  for (const deleteSome of DELETE_SOME) {
    while ((await session.write(({ run }) => run(deleteSome, { id, batch: BATCH }))) === BATCH);
  }
  return (await session.write(({ run }) => run(DELETE, { id }))) > 0;
}

async function begin(
  queries: Queries,
  publicKey: string,
  options: ChangeOptions<Application>,
): Promise<string | undefined> {
  await requireCurrentApplication(queries, publicKey, options);
  const disabled = await queries.first(DISABLE, { public_key: Buffer.from(publicKey) });
  if (disabled === undefined) return undefined;
  await writeAudit(queries, options.audit);
  return disabled.id;
}
