import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import type { Attempt } from "./attempt.js";

/** Connections deleted in one transaction: a few milliseconds of the write lock and of the event loop. */
const BATCH = 200;

/**
 * Deletes an application with its connections. It is disabled first, so that no call comes through from then on, and
 * emptied in short transactions; a process that dies in between leaves a disabled application to delete again.
 */
export function prepareDeleteApplication(db: Database.Database, attempt: Attempt) {
  const disable = prepareDisable(db);
  const deleteConnections = prepareDeleteConnections(db);
  const deleteRow = prepareDeleteRow(db);
  return async (publicKey: string): Promise<boolean> => {
    const id = await attempt.write(() => disable(publicKey));
    if (id === undefined) return false;
    while ((await attempt.write(() => deleteConnections(id))) === BATCH) await nextTurn();
    return attempt.write(() => deleteRow(id));
  };
}

function prepareDisable(db: Database.Database) {
  const statement = db.prepare<[string], { id: string }>(
    "UPDATE applications SET state = 'DISABLED' WHERE public_key = ? RETURNING id",
  );
  return (publicKey: string): string | undefined => statement.get(publicKey)?.id;
}

function prepareDeleteConnections(db: Database.Database) {
  const statement = db.prepare<[string, number]>(`
    DELETE FROM connections WHERE id IN (SELECT id FROM connections WHERE application_id = ? LIMIT ?)`);
  return (applicationId: string): number => statement.run(applicationId, BATCH).changes;
}

/** Connections that were put meanwhile go with it (ON DELETE CASCADE). */
function prepareDeleteRow(db: Database.Database) {
  const statement = db.prepare<[string]>("DELETE FROM applications WHERE id = ?");
  return (id: string): boolean => statement.run(id).changes > 0;
}
