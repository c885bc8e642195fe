import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import pg from "pg";
import { type PostgresLocation, textFromDatabaseLocation } from "../config/database-location.js";
import { StoreOpenError } from "./database.js";
import { PostgresError, postgresErrorFrom } from "./postgres-error.js";

/** What one process may take of the database. */
export interface PostgresLimits {
  readonly maxConnections: number;
  /** For a connection, and for a statement. */
  readonly timeoutMs: number;
}

/** The server ends a statement first, so that its error says so; this is for a server that says nothing more. */
const ANSWER_GRACE_MS = 500;
/** A connection that nobody used for so long is closed, in milliseconds. */
const IDLE_MS = 60_000;
/** A connection is not used for longer, in seconds: after a failover, its address may lead to another server. */
const LIFETIME_S = 600;
/** Firewalls forget connections that are silent for minutes, in milliseconds. */
const KEEP_ALIVE_MS = 30_000;

const types = { getTypeParser };

/**
 * Opens connections as they are needed; none is made here. Throws StoreOpenError when a certificate file cannot be read. */
export function createPool(location: PostgresLocation, limits: PostgresLimits): pg.Pool {
  const { host, port, user, database, options } = location;
  const pool = new pg.Pool({
    host,
    port,
    user,
    database,
    // pg takes PGPASSWORD where there is none, as PostgreSQL's own programs do.
    password: location.password?.reveal(),
    ssl: tlsFrom(location),
    application_name: "provider-call-relay",
    ...(options === undefined ? {} : { options }),
    max: limits.maxConnections,
    connectionTimeoutMillis: limits.timeoutMs,
    query_timeout: limits.timeoutMs + ANSWER_GRACE_MS,
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: LIFETIME_S,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types,
    onConnect: (client) => prepareSession(client, limits),
  });
  // An idle connection that ends is taken out of the pool; the next one who needs one opens another.
  pool.on("error", () => {});
  // One that ends while it is used rejects what it was used for, and says so twice.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/**
 * Bounds statements and transactions, and makes commits durable where the server's setting does not: an operator's
 * stronger one (`remote_apply`) stays. A server that cannot be written is none, as after a failover.
 */
async function prepareSession(client: pg.ClientBase, { timeoutMs }: PostgresLimits): Promise<void> {
  const { rows } = await client.query<{ read_only: string }>(
    `SELECT set_config('statement_timeout', $1, false), set_config('idle_in_transaction_session_timeout', $1, false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
         ELSE current_setting('synchronous_commit') END, false),
       current_setting('transaction_read_only') AS read_only`,
    [String(timeoutMs)],
  );
  if (rows[0]?.read_only === "on") throw new PostgresError("25006");
}

/** A connection for one piece of work. Rejects with PostgresError. */
export async function takeConnection(pool: pg.Pool): Promise<pg.PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw postgresErrorFrom(error);
  }
}

function tlsFrom(location: PostgresLocation): ConnectionOptions | false {
  const { sslMode, sslRootCert, sslCert, sslKey } = location;
  if (sslMode === "disable") return false;
  const read = (path: string | undefined) => (path === undefined ? undefined : readPem(location, path));
  return {
    ca: read(sslRootCert),
    cert: read(sslCert),
    key: read(sslKey),
    rejectUnauthorized: sslMode !== "require",
    ...(sslMode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
  };
}

function readPem(location: PostgresLocation, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StoreOpenError(textFromDatabaseLocation(location), `${path} cannot be read (${code})`, { cause: error });
  }
}

/** int8 as a number: what is stored there are times and counts, far below 2^53. */
function getTypeParser(oid: number, format?: "text" | "binary") {
  if (oid === pg.types.builtins.INT8) return Number;
  return format === "binary" ? pg.types.getTypeParser(oid, format) : pg.types.getTypeParser(oid, "text");
}
