import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseLocation } from "../config/database-location.js";
import type { Sealer } from "../sealing/seal.js";
import { StoreOpenError } from "./database.js";
import { assertKnownVersion, databaseFile, isCurrent } from "./open-database.js";
import type { PostgresLimits } from "./postgres-pool.js";
import { createKeyCheckStore, createSealedRows } from "./sealed-rows.js";
import { createSqliteDatabase } from "./sqlite-driver.js";
import { isDamage, openErrorFrom } from "./sqlite-error.js";
import type { Store, StoreListeners, StoreState } from "./store.js";
import { judgeKeys, type KeyedStore, KeyMismatchError } from "./verify-keys.js";

/** Where the store is, and what it may take. */
export interface StoreConfig {
  readonly database: DatabaseLocation;
  readonly databaseConnections: number;
  readonly databaseTimeoutMs: number;
}

/**
 * Opens the store, and brings it to this version's schema; a database that has none yet gets one. Rejects with
 * StoreOpenError when the relay cannot start with it.
 */
export async function openStore(config: StoreConfig, listeners: StoreListeners = {}): Promise<Store> {
  const { database } = config;
  if (database.kind === "sqlite") {
    const { openSqliteStore } = await import("./sqlite.js");
    return openSqliteStore(database.path, listeners);
  }
  const { openPostgresStore } = await import("./postgres.js");
  return openPostgresStore(database, limitsFrom(config), listeners);
}

/** Whether there is a store already, whose values a new key would not open. Changes nothing. */
export async function hasStore(config: StoreConfig): Promise<boolean> {
  const { database } = config;
  if (database.kind === "sqlite") return existsSync(database.path);
  const { hasPostgresStore } = await import("./postgres.js");
  return hasPostgresStore(database, limitsFrom(config));
}

/** What of a configuration concerns PostgreSQL. */
function limitsFrom({ databaseConnections, databaseTimeoutMs }: StoreConfig): PostgresLimits {
  return { maxConnections: databaseConnections, timeoutMs: databaseTimeoutMs };
}

/** What was found; `note` is for the operator. */
export interface Inspection {
  readonly state: StoreState;
  readonly note?: string | undefined;
}

/** Reading the pages of a database takes so long at most, in milliseconds: about two gigabytes, once they are in memory. */
const MAX_READ_MS = 5_000;
const CUT_SHORT = "is large: its first pages are whole, and the others were not looked at";
const EMPTY = "is an empty file: a start makes a new store in it";
const DAMAGED = "is damaged; stop the relay, keep its files, and restore the last good backup";

/** The wait for a lock, in milliseconds: another process may be migrating. */
const TIMEOUT_MS = 5_000;

/**
 * Looks whether a relay could start with this store and these keys, and changes nothing: no file is made, no schema is
 * brought up to date. Rejects with StoreOpenError or KeyMismatchError when it could not.
 *
 * @param sealer undefined when there is no key file to hold against the store.
 */
export async function inspectStore(config: StoreConfig, sealer: Sealer | undefined): Promise<Inspection> {
  const { database } = config;
  const judge = async (store: KeyedStore) => sealer === undefined || judgeKeys(store, sealer);
  if (database.kind === "sqlite") return inspectSqlite(databaseFile(database.path), judge);
  const { inspectPostgresStore } = await import("./postgres.js");
  return { state: await inspectPostgresStore(database, limitsFrom(config), judge) };
}

async function inspectSqlite(file: string, judge: (store: KeyedStore) => Promise<unknown>): Promise<Inspection> {
  if (!existsSync(file)) return { state: "missing" };
  try {
    // SQLite would go on without a word with a file that it may only read.
    accessSync(file, constants.R_OK | constants.W_OK);
    accessSync(dirname(file), constants.W_OK);
    if (statSync(file).size === 0) return { state: "older", note: EMPTY };
    const state = await judgeSqlite(file, judge);
    return { state, note: (await isReadWhole(file)) ? undefined : CUT_SHORT };
  } catch (error) {
    throw error instanceof KeyMismatchError ? error : openErrorFrom(file, error);
  }
}

async function isReadWhole(file: string): Promise<boolean> {
  const { readPages } = await import("./sqlite.js");
  return readPages(file, MAX_READ_MS).catch((cause: unknown) => {
    throw isDamage(cause) ? new StoreOpenError(file, DAMAGED, { cause }) : cause;
  });
}

async function judgeSqlite(file: string, judge: (store: KeyedStore) => Promise<unknown>): Promise<StoreState> {
  const { default: Database } = await import("better-sqlite3");
  const db = new Database(file, { fileMustExist: true, timeout: TIMEOUT_MS });
  try {
    assertKnownVersion(db, file);
    if (!isCurrent(db)) return "older";
    const database = createSqliteDatabase(db);
    await judge({ keyChecks: createKeyCheckStore(database), sealedRows: createSealedRows(database) });
    return "current";
  } finally {
    db.close();
  }
}
