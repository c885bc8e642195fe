import { all, createStatement, type Database, run } from "./database.js";

/** A known text sealed under one key: it tells whether the key file's key of this id is the one the store knows. */
export interface KeyCheck {
  readonly keyId: string;
  readonly sealed: Uint8Array;
}

/** Where key checks are kept, one per key. */
export interface KeyCheckStore {
  list(): Promise<KeyCheck[]>;
  /** Keeps the check that is there already when there is one for this key. */
  add(check: KeyCheck): Promise<void>;
  delete(keyId: string): Promise<void>;
}

const LIST = createStatement<object, { key_id: string; sealed: Uint8Array }>(
  "list_key_checks",
  "SELECT key_id, sealed FROM key_checks ORDER BY created_at, key_id",
);

const ADD = createStatement<{ key_id: string; sealed: Uint8Array; now: number }>(
  "add_key_check",
  "INSERT INTO key_checks (key_id, sealed, created_at) VALUES (:key_id, :sealed, :now) ON CONFLICT (key_id) DO NOTHING",
);

const DELETE = createStatement<{ key_id: string }>("delete_key_check", "DELETE FROM key_checks WHERE key_id = :key_id");

/** Key checks. */
export function createKeyCheckStore(database: Database): KeyCheckStore {
  return {
    list: async () =>
      (await database.read(() => all(LIST, {}))).map(({ key_id, sealed }) => ({ keyId: key_id, sealed })),
    add: async ({ keyId, sealed }) =>
      void (await database.write(() => run(ADD, { key_id: keyId, sealed, now: database.now() }))),
    delete: async (keyId) => void (await database.write(() => run(DELETE, { key_id: keyId }))),
  };
}
