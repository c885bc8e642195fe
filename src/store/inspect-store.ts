import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Sealer } from "../tokens/seal.js";
import { createAttempt } from "./attempt.js";
import { createKeyCheckStore } from "./key-checks.js";
import { assertKnownVersion, isCurrent } from "./migrate.js";
import { databaseFile } from "./open-database.js";
import { limitsFrom, type StoreConfig } from "./open-store.js";
import { createSealedRows } from "./sealed-rows.js";
import { openErrorFrom } from "./sqlite-error.js";
import { judgeKeys, type KeyedStore, KeyMismatchError } from "./verify-keys.js";

/** What is there: no store yet, one of an older version that a start brings up to date, or one of this version. */
export type StoreState = "missing" | "older" | "current";

/** The wait for a lock, in milliseconds: another process may be migrating. */
const TIMEOUT_MS = 5_000;

/**
 * Looks whether a relay could start with this store and these keys, and changes nothing: no file is made, no schema is
 * brought up to date. Rejects with StoreOpenError or KeyMismatchError when it could not.
 *
 * @param sealer undefined when there is no key file to hold against the store.
 */
export async function inspectStore(config: StoreConfig, sealer: Sealer | undefined): Promise<StoreState> {
  const { database } = config;
  const judge = async (store: KeyedStore) => sealer === undefined || judgeKeys(store, sealer);
  if (database.kind === "sqlite") return inspectSqlite(databaseFile(database.path), judge);
  const { inspectPostgresStore } = await import("./postgres.js");
  return inspectPostgresStore(database, limitsFrom(config), judge);
}

async function inspectSqlite(file: string, judge: (store: KeyedStore) => Promise<unknown>): Promise<StoreState> {
  if (!existsSync(file)) return "missing";
  try {
    // SQLite would go on without a word with a file that it may only read.
    accessSync(file, constants.R_OK | constants.W_OK);
    accessSync(dirname(file), constants.W_OK);
    return await judgeSqlite(file, judge);
  } catch (error) {
    throw error instanceof KeyMismatchError ? error : openErrorFrom(file, error);
  }
}

async function judgeSqlite(file: string, judge: (store: KeyedStore) => Promise<unknown>): Promise<StoreState> {
  const { default: Database } = await import("better-sqlite3");
  const db = new Database(file, { fileMustExist: true, timeout: TIMEOUT_MS });
  try {
    assertKnownVersion(db, file);
    if (!isCurrent(db)) return "older";
    const attempt = createAttempt(db, { forgetAll: () => {} });
    const keyChecks = createKeyCheckStore(db, attempt, Date.now);
    await judge({ keyChecks, sealedRows: createSealedRows(db, attempt) });
    return "current";
  } finally {
    db.close();
  }
}
