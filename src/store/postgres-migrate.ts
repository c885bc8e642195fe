import { createStatement } from "./database.js";
import { PostgresError } from "./postgres-error.js";
import type { Queries, Session } from "./postgres-session.js";
import { POSTGRES_MIGRATIONS } from "./schema.js";
import { StoreOpenError } from "./store-open-error.js";

const ENCODING = createStatement<object, { encoding: string }>(
  "server_encoding",
  "SELECT current_setting('server_encoding') AS encoding",
);

const VERSION = createStatement<object, { version: number }>(
  "schema_version",
  "SELECT version FROM relay_schema WHERE id = 1",
);

const CREATE_VERSION = createStatement<object>(
  "create_schema_version",
  "CREATE TABLE IF NOT EXISTS relay_schema (id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), version BIGINT NOT NULL)",
);

const ADD_VERSION = createStatement<object>(
  "add_schema_version",
  "INSERT INTO relay_schema (id, version) VALUES (1, 0) ON CONFLICT (id) DO NOTHING",
);

/** The row is the lock: whoever has it migrates, and the others find the work done. */
const LOCK_VERSION = createStatement<object, { version: number }>(
  "lock_schema_version",
  "SELECT version FROM relay_schema WHERE id = 1 FOR UPDATE",
);

const SET_VERSION = createStatement<{ version: number }>(
  "set_schema_version",
  "UPDATE relay_schema SET version = :version WHERE id = 1",
);

/**
 * Applies the migrations that a database has not seen, all of them or none, in one transaction; another process waits
 * for it. Resolves to the version before and after. Rejects with StoreOpenError when the database is from a newer
 * version or has another encoding than UTF-8.
 *
 * @param database what to call it in messages.
 */
export async function migratePostgres(
  session: Session,
  database: string,
  migrations = POSTGRES_MIGRATIONS,
): Promise<{ readonly from: number; readonly to: number }> {
  const to = migrations.length;
  const from = await knownPostgresVersion(session, database, migrations);
  if (from === to) return { from, to };
  if (from === undefined) await createVersion(session);
  return session.write(async (queries) => {
    const locked = (await queries.first(LOCK_VERSION, {}))?.version ?? 0;
    requireKnown(locked, database, to);
    for (const sql of migrations.slice(locked)) await runScript(queries, sql);
    await queries.run(SET_VERSION, { version: to });
    return { from: from ?? 0, to };
  });
}

/**
 * The version of the database's schema, undefined when it has none of the relay; `isCurrent` is that of this relay.
 * Rejects with StoreOpenError when the relay cannot start with it. Writes nothing.
 */
export async function inspectPostgresVersion(
  session: Session,
  database: string,
): Promise<{ readonly version: number | undefined; readonly isCurrent: boolean }> {
  const version = await knownPostgresVersion(session, database, POSTGRES_MIGRATIONS);
  return { version, isCurrent: version === POSTGRES_MIGRATIONS.length };
}

async function knownPostgresVersion(
  session: Session,
  database: string,
  migrations: readonly string[],
): Promise<number | undefined> {
  await requireUtf8(session, database);
  const version = await postgresVersion(session);
  requireKnown(version ?? 0, database, migrations.length);
  return version;
}

/** The version of the database's schema; undefined when it has none of the relay. Rejects as the session does. */
export async function postgresVersion(session: Session): Promise<number | undefined> {
  try {
    return (await session.read(({ first }) => first(VERSION, {})))?.version;
  } catch (error) {
    // undefined_table (https://www.postgresql.org/docs/current/errcodes-appendix.html)
    if (error instanceof PostgresError && error.code === "42P01") return undefined;
    throw error;
  }
}

/** Two processes may make the table at the same moment: PostgreSQL then refuses one of them, and it is there. */
async function createVersion(session: Session): Promise<void> {
  try {
    await session.write(({ run }) => run(CREATE_VERSION, {}));
  } catch (error) {
    if (!(error instanceof PostgresError && /^(23505|42P07|42710)$/.test(error.code))) throw error;
  }
  await session.write(({ run }) => run(ADD_VERSION, {}));
}

async function runScript({ send }: Queries, sql: string): Promise<void> {
  const statements = sql.replaceAll(/--.*$/gm, "").split(";");
  for (const text of statements) if (text.trim() !== "") await send(text);
}

async function requireUtf8(session: Session, database: string): Promise<void> {
  const encoding = (await session.read(({ first }) => first(ENCODING, {})))?.encoding;
  if (encoding?.toUpperCase() === "UTF8") return;
  throw new StoreOpenError(database, `has the encoding ${encoding}; create it with ENCODING 'UTF8'`);
}

function requireKnown(version: number, database: string, known: number): void {
  if (version <= known) return;
  throw new StoreOpenError(
    database,
    `has schema version ${version}, this relay knows ${known}; run the newer relay, or restore an older backup`,
  );
}
