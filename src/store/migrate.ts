import type Database from "better-sqlite3";
import { SQLITE_MIGRATIONS } from "./schema.js";
import { StoreOpenError } from "./store-open-error.js";

/**
 * Applies the migrations that a database has not seen. All of them or none: they run in one write transaction, which
 * also keeps a second process from applying them at the same time.
 */
export function migrate(db: Database.Database, file: string, migrations = SQLITE_MIGRATIONS): void {
  if (versionOf(db) === migrations.length) return;
  db.transaction(() => {
    // Read again: another process may have migrated while this one waited for the lock.
    assertKnownVersion(db, file, migrations);
    for (const sql of migrations.slice(versionOf(db))) db.exec(sql);
    db.pragma(`user_version = ${migrations.length}`);
  }).immediate();
}

/** Throws StoreOpenError when the database is from a newer version, or not the relay's. Writes nothing. */
export function assertKnownVersion(db: Database.Database, file: string, migrations = SQLITE_MIGRATIONS): void {
  // Both in one transaction, so that they are of one moment: another process may be migrating.
  const { version, isEmpty } = db.transaction(() => ({ version: versionOf(db), isEmpty: !hasTables(db) }))();
  if (version < 0 || version > migrations.length) {
    throw new StoreOpenError(
      file,
      `has schema version ${version}, this relay knows ${migrations.length}; run the newer relay, or restore an older backup`,
    );
  }
  if (version === 0 && !isEmpty) {
    throw new StoreOpenError(file, "belongs to another program: it has tables but no schema version of the relay");
  }
}

/** Whether the schema is this version's. */
export function isCurrent(db: Database.Database): boolean {
  return versionOf(db) === SQLITE_MIGRATIONS.length;
}

function versionOf(db: Database.Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}

function hasTables(db: Database.Database): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() !== undefined;
}
