import Database from "better-sqlite3";

/** The database of a world, behind the relays' back. */
export interface WorldDatabase {
  /** As RELAY_DATABASE says it. */
  readonly url: string;
  /** Lets the user's access token end, and touches nothing else of the row. */
  expire(userId: string): Promise<void> | void;
  /** The user's row as it is stored. */
  row(userId: string): Readonly<Record<string, unknown>>;
  /** `ok` for a database that is whole. */
  checkIntegrity(): string;
  close(): Promise<void> | void;
}

/** Opens a file that a store has made. */
export function openSqliteFile(path: string): WorldDatabase {
  const db = new Database(path);
  const expire = db.prepare<[string]>("UPDATE connections SET expires_at = 1 WHERE user_id = ?");
  const select = db.prepare<[string], Record<string, unknown>>("SELECT * FROM connections WHERE user_id = ?");
  return {
    url: `sqlite:${path}`,
    expire: (userId) => void expire.run(userId),
    row: (userId) => select.get(userId) as Record<string, unknown>,
    checkIntegrity: () => String(db.pragma("integrity_check", { simple: true })),
    close: () => void db.close(),
  };
}
