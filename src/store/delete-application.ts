import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import type { Application } from "../applications/application.js";
import { type ChangeOptions, requireCurrent } from "../change-options.js";
import type { Attempt } from "./attempt.js";
import type { WriteAudit } from "./audit-records.js";

/** Rows deleted in one transaction: a few milliseconds of the write lock and of the event loop. */
const BATCH = 200;

/**
 * Deletes an application with its connections. It is disabled first, so that no call comes through from then on, and
 * emptied in short transactions; a process that dies in between leaves a disabled application to delete again. The
 * audit trail has it from the first of them on.
 */
export function prepareDeleteApplication(
  db: Database.Database,
  attempt: Attempt,
  {
    find,
    writeAudit,
  }: {
    readonly find: (publicKey: string) => Application | undefined;
    readonly writeAudit: WriteAudit;
  },
) {
  const disable = prepareDisable(db);
  const deletions = [prepareDeleteSome(db, "connections"), prepareDeleteSome(db, "tickets")];
  const deleteRow = prepareDeleteRow(db);
  const begin = (publicKey: string, options: ChangeOptions<Application>): string | undefined => {
    const current = find(publicKey);
    if (current === undefined) return undefined;
    requireCurrent(options, current);
    writeAudit(options.audit);
    return disable(publicKey);
  };
  return async (publicKey: string, options: ChangeOptions<Application> = {}): Promise<boolean> => {
    const id = await attempt.write(() => begin(publicKey, options));
    if (id === undefined) return false;
    for (const deleteSome of deletions) {
      while ((await attempt.write(() => deleteSome(id))) === BATCH) await nextTurn();
    }
    return attempt.write(() => deleteRow(id));
  };
}

function prepareDisable(db: Database.Database) {
  const statement = db.prepare<[string], { id: string }>(
    "UPDATE applications SET state = 'DISABLED' WHERE public_key = ? RETURNING id",
  );
  return (publicKey: string): string | undefined => statement.get(publicKey)?.id;
}

function prepareDeleteSome(db: Database.Database, table: "connections" | "tickets") {
  const statement = db.prepare<[string, number]>(`
    DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE application_id = ? LIMIT ?)`);
  return (applicationId: string): number => statement.run(applicationId, BATCH).changes;
}

/** Rows that came meanwhile go with it (ON DELETE CASCADE). */
function prepareDeleteRow(db: Database.Database) {
  const statement = db.prepare<[string]>("DELETE FROM applications WHERE id = ?");
  return (id: string): boolean => statement.run(id).changes > 0;
}
