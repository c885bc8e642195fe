import type Database from "better-sqlite3";
import { MIGRATION_1 } from "./migration-1.js";
import { MIGRATION_2 } from "./migration-2.js";
import { MIGRATION_3 } from "./migration-3.js";
import { MIGRATION_4 } from "./migration-4.js";
import { MIGRATION_5 } from "./migration-5.js";
import { MIGRATION_6 } from "./migration-6.js";
import { MIGRATION_7 } from "./migration-7.js";
import { MIGRATION_8 } from "./migration-8.js";
import { MIGRATION_9 } from "./migration-9.js";
import { MIGRATION_10 } from "./migration-10.js";
import { MIGRATION_11 } from "./migration-11.js";
import { StoreOpenError } from "./store-open-error.js";

/** In order; number n brings a database from version n-1 to n. One that was released is never changed. */
export const MIGRATIONS: readonly string[] = [
  MIGRATION_1,
  MIGRATION_2,
  MIGRATION_3,
  MIGRATION_4,
  MIGRATION_5,
  MIGRATION_6,
  MIGRATION_7,
  MIGRATION_8,
  MIGRATION_9,
  MIGRATION_10,
  MIGRATION_11,
];

/**
 * Applies the migrations that a database has not seen. All of them or none: they run in one write transaction, which
 * also keeps a second process from applying them at the same time.
 */
export function migrate(db: Database.Database, file: string, migrations = MIGRATIONS): void {
  if (versionOf(db) === migrations.length) return;
  db.transaction(() => {
    // Read again: another process may have migrated while this one waited for the lock.
    assertKnownVersion(db, file, migrations);
    for (const sql of migrations.slice(versionOf(db))) db.exec(sql);
    db.pragma(`user_version = ${migrations.length}`);
  }).immediate();
}

/** Throws StoreOpenError when the database is from a newer version, or not the relay's. Writes nothing. */
export function assertKnownVersion(db: Database.Database, file: string, migrations = MIGRATIONS): void {
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
  return versionOf(db) === MIGRATIONS.length;
}

function versionOf(db: Database.Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}

function hasTables(db: Database.Database): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() !== undefined;
}
