import type { KeyCheck, KeyCheckStore } from "./key-checks.js";
import { createStatement, type Session } from "./postgres-session.js";

const LIST = createStatement<object, { key_id: string; sealed: Uint8Array }>(
  "list_key_checks",
  "SELECT key_id, sealed FROM key_checks ORDER BY created_at, key_id",
);

const ADD = createStatement<{ key_id: string; sealed: Uint8Array; now: number }>(
  "add_key_check",
  "INSERT INTO key_checks (key_id, sealed, created_at) VALUES (:key_id, :sealed, :now) ON CONFLICT (key_id) DO NOTHING",
);

const DELETE = createStatement<{ key_id: string }>("delete_key_check", "DELETE FROM key_checks WHERE key_id = :key_id");

/** Key checks in PostgreSQL. */
export function createPostgresKeyCheckStore(session: Session, now: () => number): KeyCheckStore {
  return {
    list: async () => (await session.read(({ all }) => all(LIST, {}))).map(checkFromRow),
    add: ({ keyId, sealed }) =>
      session.write(async ({ run }) => void (await run(ADD, { key_id: keyId, sealed, now: now() }))),
    delete: (keyId) => session.write(async ({ run }) => void (await run(DELETE, { key_id: keyId }))),
  };
}

function checkFromRow({ key_id, sealed }: { key_id: string; sealed: Uint8Array }): KeyCheck {
  return { keyId: key_id, sealed };
}
