import { type PostgresLocation, textFromDatabaseLocation } from "../config/database-location.js";
import { RelayError } from "../model/errors.js";
import { createPostgresCallStore } from "./call-blocks.js";
import { createFigureStore } from "./call-figures.js";
import {
  type Cache,
  type CacheOptions,
  createStatement,
  type Database,
  first,
  nothing,
  type Operation,
  StoreOpenError,
} from "./database.js";
import { createBatch, createLookupCache, type LookupCache } from "./lookup-cache.js";
import { openErrorFrom, PostgresError } from "./postgres-error.js";
import { createPool, type PostgresLimits } from "./postgres-pool.js";
import { createPresence } from "./postgres-presence.js";
import { createSession, type Queries, type Session } from "./postgres-session.js";
import { digestOf, otherSchema, POSTGRES_MIGRATIONS, plainSql, requireKnownVersion } from "./schema.js";
import { createKeyCheckStore, createSealedRows } from "./sealed-rows.js";
import { createTables, type Store, type StoreOptions, type StoreState } from "./store.js";
import { countAtOnce, type StoreCheck, UNWATCHED, watchStore } from "./store-health.js";
import { type KeyedStore, KeyMismatchError } from "./verify-keys.js";

/** A store in PostgreSQL, with direct access to its database. */
export interface PostgresStore extends Store {
  readonly session: Session;
  close(): Promise<void>;
}

const CLOCK = createStatement<object, { clock: number }>("SELECT :clock AS clock");

/**
 * Opens the store and migrates it to this version's schema. Rejects with StoreOpenError, whose message has neither user
 * nor password, when the relay cannot start with this database.
 */
export async function openPostgresStore(
  location: PostgresLocation,
  limits: PostgresLimits,
  { now = Date.now, onOperation, onHealth }: StoreOptions = {},
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
  const { rows } = await session.read(({ send }) => send("SELECT id FROM store_identity"));
  const database = createPostgresDatabase(session, now);
  let presence: ReturnType<typeof createPresence> | undefined;
  return {
    ...createTables(database, {
      calls: createPostgresCallStore(database),
      figures: createFigureStore((work) => work(database)),
      health,
    }),
    id: rows[0]?.id ?? "",
    session,
    clock: async () => (await database.read(() => first(CLOCK, {})))?.clock,
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

/**
 * The write check: writes a row and waits for the disk, without changing a value. On a session of its own, so that it
 * does not count as an operation of the store.
 */
function writeCheck(session: Session): StoreCheck {
  const touch = "UPDATE relay_schema SET version = version WHERE id = 1";
  return { look: () => session.write(async ({ send }) => void (await send(touch))), everyMs: 10_000, retryMs: 1000 };
}

/** Whether the database holds values that a new key could not open. Rejects with StoreOpenError. */
export async function hasPostgresStore(location: PostgresLocation, limits: PostgresLimits): Promise<boolean> {
  return lookInto(location, limits, async (session) => {
    if ((await foundSchema(session)) === undefined) return false;
    return (await createKeyCheckStore(createPostgresDatabase(session)).list()).length > 0;
  });
}

/** See `inspectStore()`. */
export async function inspectPostgresStore(
  location: PostgresLocation,
  limits: PostgresLimits,
  judge: (store: KeyedStore) => Promise<unknown>,
): Promise<StoreState> {
  return lookInto(location, limits, async (session) => {
    const version = await knownVersion(session, textFromDatabaseLocation(location), POSTGRES_MIGRATIONS);
    if (version !== POSTGRES_MIGRATIONS.length) await requireCreatable(session);
    if (version === undefined) return "missing";
    if (version < POSTGRES_MIGRATIONS.length) return "older";
    const database = createPostgresDatabase(session);
    await judge({ keyChecks: createKeyCheckStore(database), sealedRows: createSealedRows(database) });
    return "current";
  });
}

/** Runs `look` over a single connection. Rejects with StoreOpenError, or with the KeyMismatchError of `look`. */
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

/** The error with the code, which the operator needs at start, instead of the message for callers. */
function causeOf(error: unknown): unknown {
  return error instanceof RelayError ? (error.cause as PostgresError) : error;
}

/** Runs operations in PostgreSQL. @param now the clock of this process, milliseconds since the epoch. */
function createPostgresDatabase(session: Session, now = Date.now): Database & { close(): void } {
  const caches: Array<Pick<LookupCache<unknown>, "forgetAll" | "close">> = [];
  const forgetAll = () => {
    for (const cache of caches) cache.forgetAll();
  };
  const read = <T>(operation: () => Operation<T>) => session.read((queries) => complete(operation(), queries));
  return {
    now,
    read,
    async write(operation, forget = forgetAll) {
      try {
        return await session.write((queries) => complete(operation(), queries));
      } finally {
        // Whether or not the write succeeds, rows that were read before it are not served after it.
        forget();
      }
    },
    createCache<Key, Value extends { readonly id: string }>(options: CacheOptions<Key, Value>): Cache<Key, Value> {
      const { textOf, findMany, findByIds } = options;
      const cache = createLookupCache<Value>({ findByIds: (ids) => read(() => findByIds(ids)) });
      caches.push(cache);
      const find = (key: Key) => read(() => options.find(key));
      const findTogether = findMany === undefined ? find : createBatch((keys: Key[]) => read(() => findMany(keys)));
      return {
        find,
        lookUp: (key) => cache.find(textOf(key), () => findTogether(key)),
        forget: (key) => cache.forget(textOf(key)),
        // `find()` is never cached here.
        forgetFound: nothing,
      };
    },
    /** Stops the background reads of its caches. */
    close() {
      for (const cache of caches) cache.close();
    },
  };
}

async function complete<T>(operation: Operation<T>, queries: Queries): Promise<T> {
  let step = operation.next();
  while (!step.done) {
    let value: unknown;
    try {
      value = await queries.answer(step.value);
    } catch (error) {
      step = operation.throw(error);
      continue;
    }
    step = operation.next(value);
  }
  return step.value;
}

/** The schema version of a database, and the digest of the migrations that created it; null in old databases. */
interface Schema {
  readonly version: number;
  readonly digest: string | null;
}

const FIND_SCHEMA = "SELECT version, to_jsonb(relay_schema) ->> 'digest' AS digest FROM relay_schema WHERE id = 1";

/**
 * Applies the pending migrations, all of them or none, in one transaction; other processes wait for it. Resolves to the
 * versions before and after. Rejects with StoreOpenError when the database is from a newer version, has a schema that
 * the migrations did not create, or has an encoding other than UTF-8.
 *
 * @param database its name in messages.
 */
export async function migratePostgres(
  session: Session,
  database: string,
  migrations = POSTGRES_MIGRATIONS,
): Promise<{ readonly from: number; readonly to: number }> {
  const to = migrations.length;
  const from = await knownVersion(session, database, migrations);
  if (from === to) return { from, to };
  await createVersion(session);
  return session.write(async (queries) => {
    // The row is the lock: its holder migrates, and the others then find the work done.
    const { rows } = await queries.send(`${FIND_SCHEMA} FOR UPDATE`);
    const locked = requireKnown(rows[0], database, migrations) ?? 0;
    for (const sql of migrations.slice(locked)) await runScript(queries, sql);
    await queries.send("UPDATE relay_schema SET version = $1, digest = $2 WHERE id = 1", [to, digestOf(migrations)]);
    return { from: from ?? 0, to };
  });
}

/**
 * The version of the database's schema; undefined when it has no relay schema. Rejects with StoreOpenError when the
 * relay cannot start with it. Writes nothing.
 */
async function knownVersion(
  session: Session,
  database: string,
  migrations: readonly string[],
): Promise<number | undefined> {
  await requireUtf8(session, database);
  return requireKnown(await foundSchema(session), database, migrations);
}

/**
 * Undefined when the database has no relay schema, or when no migration of it has been committed: another relay may be
 * making it. Rejects as the session does.
 */
async function foundSchema(session: Session): Promise<Schema | undefined> {
  try {
    return (await session.read(({ send }) => send(`${FIND_SCHEMA} AND version <> 0`))).rows[0];
  } catch (error) {
    // undefined_table (https://www.postgresql.org/docs/current/errcodes-appendix.html)
    if (error instanceof PostgresError && error.code === "42P01") return undefined;
    throw error;
  }
}

/** Creates the version table. When two processes do so at once PostgreSQL refuses one of them, but the table exists. */
async function createVersion(session: Session): Promise<void> {
  try {
    await session.write(({ send }) =>
      send(
        `CREATE TABLE IF NOT EXISTS relay_schema
           (id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), version BIGINT NOT NULL, digest TEXT COLLATE "C")`,
      ),
    );
  } catch (error) {
    if (!(error instanceof PostgresError && /^(23505|42P07|42710)$/.test(error.code))) throw error;
  }
  await session.write(async ({ send }) => {
    // Old databases have the table without this column.
    await send('ALTER TABLE relay_schema ADD COLUMN IF NOT EXISTS digest TEXT COLLATE "C"');
    await send("INSERT INTO relay_schema (id, version) VALUES (1, 0) ON CONFLICT (id) DO NOTHING");
  });
}

async function runScript({ send }: Queries, sql: string): Promise<void> {
  for (const text of plainSql(sql).split(";")) if (text.trim() !== "") await send(text);
}

/** Rejects when a migration could not create tables: for want of the schema in `search_path`, or of the privilege. */
async function requireCreatable(session: Session): Promise<void> {
  const { rows } = await session.read(({ send }) =>
    send("SELECT has_schema_privilege(current_schema(), 'CREATE') AS may_create"),
  );
  // NULL without a schema (https://www.postgresql.org/docs/current/functions-info.html).
  if (rows[0].may_create !== true) throw new PostgresError(rows[0].may_create === null ? "3F000" : "42501");
}

async function requireUtf8(session: Session, database: string): Promise<void> {
  const { rows } = await session.read(({ send }) => send("SELECT current_setting('server_encoding') AS encoding"));
  const { encoding } = rows[0];
  if (encoding.toUpperCase() === "UTF8") return;
  throw new StoreOpenError(database, `has the encoding ${encoding}; create it with ENCODING 'UTF8'`);
}

function requireKnown(schema: Schema | undefined, database: string, migrations: readonly string[]): number | undefined {
  if (schema === undefined) return undefined;
  const { version, digest } = schema;
  requireKnownVersion(version, database, migrations);
  const isOther = version > 0 && digest !== null && digest !== digestOf(migrations.slice(0, version));
  if (isOther) throw otherSchema(database, version);
  return version;
}
