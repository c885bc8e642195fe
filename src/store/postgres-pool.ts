import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import pg from "pg";
import { type PostgresLocation, textFromDatabaseLocation } from "../config/database-location.js";
import { StoreOpenError } from "./database.js";
import { PostgresError, postgresErrorFrom } from "./postgres-error.js";

/** What one process may use of the database. */
export interface PostgresLimits {
  readonly maxConnections: number;
  /** For making a connection, and for a statement. */
  readonly timeoutMs: number;
}

/**
 * The server's own timeout comes first and gives a clear error; this one, later, is for a server that does not answer.
 */
const ANSWER_GRACE_MS = 500;
/** Idle time after which a connection is closed, in milliseconds. */
const IDLE_MS = 60_000;
/** Longest life of a connection, in seconds: after a failover, its address may lead to another server. */
const LIFETIME_S = 600;
/** TCP keep-alive delay, in milliseconds: firewalls drop connections that are silent for minutes. */
const KEEP_ALIVE_MS = 30_000;

const types = { getTypeParser };

/**
 * Creates a pool that opens connections as they are needed; none is opened here. Throws StoreOpenError when a
 * certificate file cannot be read.
 */
export function createPool(location: PostgresLocation, limits: PostgresLimits): pg.Pool {
  const { host, port, user, database, options } = location;
  const pool = new pg.Pool({
    host,
    port,
    user,
    database,
    // Without a password pg uses PGPASSWORD, as PostgreSQL's own programs do.
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
  // The pool removes an idle connection that ends, and opens another one when needed.
  pool.on("error", () => {});
  // A connection that ends in use rejects its query; it also emits this error event.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/**
 * Sets timeouts for statements and transactions, and makes commits durable if the server's setting does not; an
 * operator's stronger setting (`remote_apply`) stays. Rejects a read-only server, such as one after a failover.
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

/** Takes a connection from the pool. Rejects with PostgresError. */
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

/** Parses int8 to a number: the store's are times and counts, far below 2^53. */
function getTypeParser(oid: number, format?: "text" | "binary") {
  if (oid === pg.types.builtins.INT8) return Number;
  return format === "binary" ? pg.types.getTypeParser(oid, format) : pg.types.getTypeParser(oid, "text");
}
