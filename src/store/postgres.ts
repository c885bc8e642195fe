import { type PostgresLocation, textFromDatabaseLocation } from "../config/database-location.js";
import { RelayError } from "../model/errors.js";
import { countAtOnce } from "./count-connections.js";
import { createStatement } from "./database.js";
import { createKeyCheckStore } from "./key-checks.js";
import { createPostgresCallStore } from "./postgres-call-blocks.js";
import { createPostgresDatabase } from "./postgres-driver.js";
import type { PostgresError } from "./postgres-error.js";
import { openErrorFrom } from "./postgres-error.js";
import { inspectPostgresVersion, migratePostgres, postgresVersion } from "./postgres-migrate.js";
import { createPool, type PostgresLimits } from "./postgres-pool.js";
import { createPresence, type Presence } from "./postgres-presence.js";
import { createSession, type Session } from "./postgres-session.js";
import type { OnOperation } from "./row-cache.js";
import { createSealedRows } from "./sealed-rows.js";
import { createTables, type Store, type StoreState } from "./store.js";
import { type OnHealth, type StoreCheck, UNWATCHED, watchStore } from "./store-health.js";
import { type KeyedStore, KeyMismatchError } from "./verify-keys.js";

/** A store in PostgreSQL, and how to use its database otherwise. */
export interface PostgresStore extends Store {
  readonly session: Session;
  close(): Promise<void>;
}

/** What the store does not need. */
export interface PostgresStoreOptions {
  /** Milliseconds since the epoch; tests replace it. */
  readonly now?: () => number;
  readonly onOperation?: OnOperation | undefined;
  readonly onHealth?: OnHealth | undefined;
}

const IDENTITY = createStatement<object, { id: string }>("store_identity", "SELECT id FROM store_identity");
/** Makes a row anew and waits for the disk, changing nothing. */
const TOUCH = createStatement<object>("touch", "UPDATE relay_schema SET version = version WHERE id = 1");

/**
 * Opens the store and brings it to this version's schema. Rejects with StoreOpenError, whose message has neither user
 * nor password, when the relay cannot start with this database.
 */
export async function openPostgresStore(
  location: PostgresLocation,
  limits: PostgresLimits,
  { now = Date.now, onOperation, onHealth }: PostgresStoreOptions = {},
): Promise<PostgresStore> {
  const pool = createPool(location, limits);
  let health = UNWATCHED;
  const session = createSession(pool, (kind, ms, isFailed) => {
    onOperation?.(kind, ms, isFailed);
    if (isFailed) health.suspect();
  });
  try {
    await migratePostgres(session, textFromDatabaseLocation(location));
  } catch (error) {
    await pool.end();
    throw openErrorFrom(textFromDatabaseLocation(location), causeOf(error));
  }
  if (onHealth !== undefined) health = watchStore({ write: writeCheck(createSession(pool)) }, onHealth);
  const { id = "" } = (await session.read(({ first }) => first(IDENTITY, {}))) ?? {};
  const database = createPostgresDatabase(session, now);
  let presence: Presence | undefined;
  return {
    ...createTables(database, { calls: createPostgresCallStore(database), health }),
    id,
    session,
    countConnections: () => countAtOnce(database),
    announce(spool) {
      presence = createPresence({ pool: createPool(location, { ...limits, maxConnections: 1 }), ...spool });
      return presence;
    },
    async close() {
      health.close();
      database.close();
      await presence?.close();
      await pool.end();
    },
  };
}

/** Nothing of it is counted as an operation of the store. */
function writeCheck(session: Session): StoreCheck {
  return { look: () => session.write(async ({ run }) => void (await run(TOUCH, {}))), everyMs: 10_000, retryMs: 1000 };
}

/** Whether the database holds values that a new key would not open. Rejects with StoreOpenError. */
export async function hasPostgresStore(location: PostgresLocation, limits: PostgresLimits): Promise<boolean> {
  return lookInto(location, limits, async (session) => {
    if ((await postgresVersion(session)) === undefined) return false;
    return (await createKeyCheckStore(createPostgresDatabase(session)).list()).length > 0;
  });
}

/** As `inspectStore()`. */
export async function inspectPostgresStore(
  location: PostgresLocation,
  limits: PostgresLimits,
  judge: (store: KeyedStore) => Promise<unknown>,
): Promise<StoreState> {
  return lookInto(location, limits, async (session) => {
    const { version, isCurrent } = await inspectPostgresVersion(session, textFromDatabaseLocation(location));
    if (version === undefined) return "missing";
    if (!isCurrent) return "older";
    const database = createPostgresDatabase(session);
    await judge({ keyChecks: createKeyCheckStore(database), sealedRows: createSealedRows(database) });
    return "current";
  });
}

/** One connection for one look. Rejects with StoreOpenError, or with what `look` judges. */
async function lookInto<Found>(
  location: PostgresLocation,
  limits: PostgresLimits,
  look: (session: Session) => Promise<Found>,
): Promise<Found> {
  const pool = createPool(location, { ...limits, maxConnections: 1 });
  try {
    return await look(createSession(pool));
  } catch (error) {
    if (error instanceof KeyMismatchError) throw error;
    throw openErrorFrom(textFromDatabaseLocation(location), causeOf(error));
  } finally {
    await pool.end();
  }
}

/** At start the operator is told the code, where callers are told what it means to them. */
function causeOf(error: unknown): unknown {
  return error instanceof RelayError ? (error.cause as PostgresError) : error;
}
