import { existsSync } from "node:fs";
import type { DatabaseLocation } from "../config/database-location.js";
import type { PostgresLimits } from "./postgres-pool.js";
import type { OnOperation } from "./sqlite-driver.js";
import type { Store } from "./store.js";
import type { OnHealth } from "./store-health.js";

/** Where the store is, and what it may take. */
export interface StoreConfig {
  readonly database: DatabaseLocation;
  readonly databaseConnections: number;
  readonly databaseTimeoutMs: number;
}

/** Who hears of the store. */
export interface StoreListeners {
  readonly onOperation?: OnOperation | undefined;
  /** Records of calls were damaged: they are begun anew, and what was there is in this file. */
  readonly onDamagedCalls?: ((aside: string) => void) | undefined;
  /** Hears how the store stands, which is then looked at for as long as it is open. */
  readonly onHealth?: OnHealth | undefined;
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
export function limitsFrom({ databaseConnections, databaseTimeoutMs }: StoreConfig): PostgresLimits {
  return { maxConnections: databaseConnections, timeoutMs: databaseTimeoutMs };
}
