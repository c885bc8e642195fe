import type { Session } from "./postgres-session.js";
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
 * Deletes an application with its connections and the records of its calls. It is disabled first, so that no call comes through from then on, and
 * emptied in short transactions; a process that dies in between leaves a disabled application to delete again.
 */
export async function deleteApplication(session: Session, publicKey: string): Promise<boolean> {
  const disabled = await session.write(({ first }) => first(DISABLE, { public_key: Buffer.from(publicKey) }));
  if (disabled === undefined) return false;
  const { id } = disabled;
  for (const deleteSome of DELETE_SOME) {
    while ((await session.write(({ run }) => run(deleteSome, { id, batch: BATCH }))) === BATCH);
  }
  return (await session.write(({ run }) => run(DELETE, { id }))) > 0;
}
