import type Database from "better-sqlite3";
import type { Attempt } from "./attempt.js";

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

/** Key checks in SQLite. */
export function createKeyCheckStore(db: Database.Database, attempt: Attempt, now: () => number): KeyCheckStore {
  const list = db.prepare<[], { key_id: string; sealed: Uint8Array }>(
    "SELECT key_id, sealed FROM key_checks ORDER BY created_at, key_id",
  );
  const add = db.prepare<[string, Uint8Array, number]>(
    "INSERT INTO key_checks (key_id, sealed, created_at) VALUES (?, ?, ?) ON CONFLICT (key_id) DO NOTHING",
  );
  const deleteOne = db.prepare<[string]>("DELETE FROM key_checks WHERE key_id = ?");
  return {
    list: () => attempt.read(() => list.all().map((row) => ({ keyId: row.key_id, sealed: row.sealed }))),
    add: ({ keyId, sealed }) => attempt.write(() => void add.run(keyId, sealed, now())),
    delete: (keyId) => attempt.write(() => void deleteOne.run(keyId)),
  };
}
