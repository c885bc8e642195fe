import { setTimeout as delay } from "node:timers/promises";
import Database from "better-sqlite3";

/** Makes a database refuse every write, as one does that is locked or full. */
export interface Refusals {
  /** Runs this SQL and refuses from then on. Resolves to what lets the database take writes again. */
  refuse(sql?: string): Promise<() => Promise<void>>;
  close(): void;
}

/** Another program has the write lock of a database file. */
export function refusalsOfFile(file: string): Refusals {
  const other = new Database(file);
  return {
    async refuse(sql = "") {
      while (!begin(other)) await delay(1);
      other.exec(sql);
      return async () => void other.exec("COMMIT");
    },
    close: () => void other.close(),
  };
}

function begin(db: Database.Database): boolean {
  try {
    db.exec("BEGIN IMMEDIATE");
    return true;
  } catch {
    // A relay writes just now.
    return false;
  }
}

/** Every write of a connection says disk_full (53100), as a full disk of PostgreSQL does. */
export async function refusalsOfServer(admin: { query(sql: string): Promise<unknown> }): Promise<Refusals> {
  await admin.query(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$`);
  return {
    async refuse(sql = "") {
      // One transaction, as the statements of one text are.
      await admin.query(
        `${sql}; CREATE TRIGGER full_disk BEFORE UPDATE ON connections FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
      );
      return async () => void (await admin.query("DROP TRIGGER full_disk ON connections"));
    },
    close: () => {},
  };
}
