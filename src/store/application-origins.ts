import type Database from "better-sqlite3";

/** Which browser origins applications list, in a table that is read by origin. */
export interface ApplicationOrigins {
  /** Replaces what an application lists; called inside the transaction that writes the application. */
  write(applicationId: string, origins: readonly string[]): void;
  /** Whether any active application lists it. */
  lists(origin: string): boolean;
}

/** Prepares its statements. */
export function prepareApplicationOrigins(db: Database.Database): ApplicationOrigins {
  const remove = db.prepare<[string]>("DELETE FROM application_origins WHERE application_id = ?");
  const insert = db.prepare<[string, string]>(
    "INSERT OR IGNORE INTO application_origins (origin, application_id) VALUES (?, ?)",
  );
  const find = db.prepare<[string]>(`
    SELECT 1 FROM application_origins JOIN applications ON applications.id = application_id
    WHERE origin = ? AND state = 'ACTIVE' LIMIT 1`);
  return {
    write(applicationId, origins) {
      remove.run(applicationId);
      for (const origin of origins) insert.run(origin, applicationId);
    },
    lists: (origin) => find.get(origin) !== undefined,
  };
}
