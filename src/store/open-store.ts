import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import type { DatabaseLocation } from "../config/database-location.js";
import type { Sealer } from "../sealing/seal.js";
import { StoreOpenError } from "./database.js";
import { assertKnownVersion, databaseFile, isCurrent } from "./open-database.js";
import type { PostgresLimits } from "./postgres-pool.js";
import { createKeyCheckStore, createSealedRows } from "./sealed-rows.js";
import { openSqliteStore, readPages } from "./sqlite.js";
import { createSqliteDatabase } from "./sqlite-driver.js";
import { isDamage, openErrorFrom } from "./sqlite-error.js";
import type { Store, StoreListeners, StoreState } from "./store.js";
import { judgeKeys, type KeyedStore, KeyMismatchError } from "./verify-keys.js";

/** Where the store is, and its limits. */
export interface StoreConfig {
  readonly database: DatabaseLocation;
  readonly databaseConnections: number;
  readonly databaseTimeoutMs: number;
}

/**
 * Opens the store and migrates it to this version's schema; an empty database gets the schema. Rejects with
 * StoreOpenError when the relay cannot start with it.
 */
export async function openStore(config: StoreConfig, listeners: StoreListeners = {}): Promise<Store> {
  const { database } = config;
  if (database.kind === "sqlite") return openSqliteStore(database.path, listeners);
  const { openPostgresStore } = await import("./postgres.js");
  return openPostgresStore(database, limitsFrom(config), listeners);
}

/** Whether a store exists already, whose values a new key could not open. Changes nothing. */
export async function hasStore(config: StoreConfig): Promise<boolean> {
  const { database } = config;
  if (database.kind === "sqlite") return existsSync(database.path);
  const { hasPostgresStore } = await import("./postgres.js");
  return hasPostgresStore(database, limitsFrom(config));
}

/** The part of the configuration that concerns PostgreSQL. */
function limitsFrom({ databaseConnections, databaseTimeoutMs }: StoreConfig): PostgresLimits {
  return { maxConnections: databaseConnections, timeoutMs: databaseTimeoutMs };
}

/** What was found; `note` is for the operator. */
export interface Inspection {
  readonly state: StoreState;
  readonly note?: string | undefined;
}

/**
 * Longest time to read a database's pages, in milliseconds: enough for about two gigabytes that are in the page cache.
 */
const MAX_READ_MS = 5_000;
const CUT_SHORT = "is large: its first pages are intact, and the others were not checked";
const EMPTY = "is an empty file; the relay creates a new store in it when it starts";
const DAMAGED = "is damaged; stop the relay, keep its files, and restore the last good backup";

/** How long to wait for a lock, in milliseconds: another process may be migrating. */
const TIMEOUT_MS = 5_000;

/**
 * Checks whether a relay could start with this store and these keys. Changes nothing: creates no file, and migrates no
 * schema. Rejects with StoreOpenError or KeyMismatchError when it could not start.
 *
 * @param sealer undefined when there is no key file to check against the store.
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
    // SQLite would silently open a file that it may only read.
    accessSync(file, constants.R_OK | constants.W_OK);
    accessSync(dirname(file), constants.W_OK);
    if (statSync(file).size === 0) return { state: "older", note: EMPTY };
    const state = await judgeSqlite(file, judge);
    return { state, note: (await isReadWhole(file)) ? undefined : CUT_SHORT };
  } catch (error) {
    throw error instanceof KeyMismatchError ? error : openErrorFrom(file, error);
  }
}

function isReadWhole(file: string): Promise<boolean> {
  return readPages(file, MAX_READ_MS).catch((cause: unknown) => {
    throw isDamage(cause) ? new StoreOpenError(file, DAMAGED, { cause }) : cause;
  });
}

async function judgeSqlite(file: string, judge: (store: KeyedStore) => Promise<unknown>): Promise<StoreState> {
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
