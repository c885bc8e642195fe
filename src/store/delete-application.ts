import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import type { Application } from "../applications/application.js";
import { type ChangeOptions, requireCurrent } from "../model/change-options.js";
import type { Attempt } from "./attempt.js";
import type { WriteAudit } from "./audit-records.js";
import type { CallsFile } from "./calls-file.js";

/** Rows deleted in one transaction: a few milliseconds of the write lock and of the event loop. */
const BATCH = 200;

/** Records of calls: some kilobytes to a hundred each. */
const BLOCK_BATCH = 20;

const TABLES = ["connections", "tickets", "call_captures"] as const;

/**
 * Deletes an application with its connections and the records of its calls. It is disabled first, so that no call comes
 * through from then on, and emptied in short transactions; a process that dies in between leaves a disabled application to
 * delete again. The audit trail has it from the first of them on.
 */
export function prepareDeleteApplication(
  db: Database.Database,
  attempt: Attempt,
  {
    find,
    writeAudit,
    calls,
  }: {
    readonly find: (publicKey: string) => Application | undefined;
    readonly writeAudit: WriteAudit;
    readonly calls: Pick<CallsFile, "deleteOf">;
  },
) {
  const disable = prepareDisable(db);
  const deletions = TABLES.map((table) => prepareDeleteSome(db, table));
  const deleteRow = prepareDeleteRow(db);
  const deleteCalls = async (id: string) => {
    while ((await calls.deleteOf(id, BLOCK_BATCH)) === BLOCK_BATCH) await nextTurn();
  };
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
    await deleteCalls(id);
    const isDeleted = await attempt.write(() => deleteRow(id));
    // Of calls that were under way; from now on none is written.
    await deleteCalls(id);
    return isDeleted;
  };
}

function prepareDisable(db: Database.Database) {
  const statement = db.prepare<[string], { id: string }>(
    "UPDATE applications SET state = 'DISABLED' WHERE public_key = ? RETURNING id",
  );
  return (publicKey: string): string | undefined => statement.get(publicKey)?.id;
}

function prepareDeleteSome(db: Database.Database, table: (typeof TABLES)[number]) {
  const statement = db.prepare<[string, number]>(`
    DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE application_id = ? LIMIT ?)`);
  return (applicationId: string): number => statement.run(applicationId, BATCH).changes;
}

/** Rows that came meanwhile go with it (ON DELETE CASCADE). */
function prepareDeleteRow(db: Database.Database) {
  const statement = db.prepare<[string]>("DELETE FROM applications WHERE id = ?");
  return (id: string): boolean => statement.run(id).changes > 0;
}
