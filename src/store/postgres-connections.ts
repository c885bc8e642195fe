import type { AuditEntry } from "../model/audit.js";
import type {
  Connection,
  ConnectionFilter,
  ConnectionKey,
  ConnectionRange,
  ConnectionStore,
  ConnectionSummary,
  NewConnection,
} from "../oauth/connection.js";
import { CONNECTION_COLUMNS } from "./connection-row.js";
import { boundsOf, type ScanBounds, SUMMARY_COLUMNS, type SummaryRow, summaryFromRow } from "./connections.js";
import { writeAudit } from "./postgres-audit-records.js";
import {
  CONNECTION_READ,
  connectionFromPostgres,
  type PostgresConnectionRead,
  type PostgresConnectionRow,
  postgresFromConnection,
} from "./postgres-connection-row.js";
import { createPostgresRenewalStore } from "./postgres-renewals.js";
import { CLOCK, createStatement, type Queries, type Session } from "./postgres-session.js";
import { enqueueEvent } from "./postgres-webhooks.js";

/** Connections in PostgreSQL. */
interface PostgresConnectionStore extends ConnectionStore {
  /** Those with these ids, in any order, in one statement. */
  findByIds(ids: readonly string[]): Promise<Connection[]>;
}

/** Opens the table. @param now the clock of this process, milliseconds since the epoch. */
export function createPostgresConnectionStore(session: Session, now: () => number): PostgresConnectionStore {
  const read = (row: PostgresConnectionRead) => connectionFromPostgres(row, now());
  const readOne = (row: PostgresConnectionRead | undefined) => row && read(row);
  return {
    find: async (key) => readOne(await session.read(({ first }) => first(FIND, parametersFrom(key)))),
    findByIds: async (ids) => (await session.read(({ all }) => all(FIND_BY_IDS, { ids }))).map(read),
    put: async (connection, at, audit) => read(await session.write((queries) => put(queries, connection, at, audit))),
    list: async (filter) => (await session.read((queries) => list(queries, filter))).map(read),
    scan: (range) => session.read((queries) => scanConnections(queries, range, now())),
    delete: async (key, at, audit) => readOne(await session.write((queries) => deleteOne(queries, key, at, audit))),
    ...createPostgresRenewalStore(session, read),
  };
}

interface KeyParameters {
  readonly application_id: string;
  readonly user_id: Buffer;
  readonly provider_name: string;
}

const FIND = createStatement<KeyParameters, PostgresConnectionRead>(
  "find_connection",
  `SELECT ${CONNECTION_READ} FROM connections
   WHERE application_id = :application_id AND user_id = :user_id AND provider_name = :provider_name`,
);

const FIND_BY_IDS = createStatement<{ ids: readonly string[] }, PostgresConnectionRead>(
  "find_connections",
  `SELECT ${CONNECTION_READ} FROM connections WHERE id = ANY(:ids::text[])`,
);

/**
 * A connection that is made again starts afresh: what is known of the old tokens says nothing of the new ones. It gets
 * the new id, so that whatever a renewal of the old tokens still writes finds no row.
 */
const PUT = createStatement<PostgresConnectionRow, PostgresConnectionRead>(
  "put_connection",
  `INSERT INTO connections (${CONNECTION_COLUMNS})
   VALUES (:id, :application_id, :user_id, :provider_name, :state, :access_token, :refresh_token,
     :id_token, :token_type, :scope, :origin_parameters, :obtained_at, :expires_at, :state_reason,
     :fail_count, :last_failed_at, :last_error_class, :next_try_at, :lease_until,
     :unanswered_since, :trouble, :version, :created_at, :updated_at)
   ON CONFLICT (application_id, user_id, provider_name) DO UPDATE SET
     id = excluded.id, state = excluded.state, state_reason = NULL,
     access_token = excluded.access_token, refresh_token = excluded.refresh_token,
     previous_refresh_token = NULL, id_token = excluded.id_token,
     token_type = excluded.token_type, scope = excluded.scope, origin_parameters = excluded.origin_parameters,
     obtained_at = excluded.obtained_at, expires_at = excluded.expires_at, version = connections.version + 1,
     lease_owner = NULL, lease_until = NULL, unanswered_since = NULL, fail_count = 0, next_try_at = NULL,
     last_error_class = NULL, trouble = NULL, refusal = NULL, refused_at = NULL, refreshed_at = NULL,
     last_failed_at = NULL, updated_at = excluded.updated_at
   RETURNING ${CONNECTION_READ}`,
);

const LIST = createStatement<{ application_id: string; limit: number }, PostgresConnectionRead>(
  "list_connections",
  `SELECT ${CONNECTION_READ} FROM connections
   WHERE application_id = :application_id ORDER BY user_id, provider_name LIMIT :limit`,
);

const LIST_OF_USER = createStatement<
  { application_id: string; user_id: Buffer; limit: number },
  PostgresConnectionRead
>(
  "list_connections_of_user",
  `SELECT ${CONNECTION_READ} FROM connections
   WHERE application_id = :application_id AND user_id = :user_id ORDER BY provider_name LIMIT :limit`,
);

const DELETE = createStatement<KeyParameters, PostgresConnectionRead>(
  "delete_connection",
  `DELETE FROM connections
   WHERE application_id = :application_id AND user_id = :user_id AND provider_name = :provider_name
   RETURNING ${CONNECTION_READ}`,
);

function parametersFrom({ applicationId, userId, providerName }: ConnectionKey): KeyParameters {
  return { application_id: applicationId, user_id: Buffer.from(userId), provider_name: providerName };
}

async function put(
  queries: Queries,
  connection: NewConnection,
  now: number,
  audit: AuditEntry | undefined,
): Promise<PostgresConnectionRead> {
  await enqueueEvent(queries, "connection.created", connection, now);
  await writeAudit(queries, audit);
  return (await queries.first(PUT, postgresFromConnection(connection, now))) as PostgresConnectionRead;
}

function list({ all }: Queries, { applicationId, userId, limit }: ConnectionFilter): Promise<PostgresConnectionRead[]> {
  const parameters = { application_id: applicationId, limit };
  return userId === undefined
    ? all(LIST, parameters)
    : all(LIST_OF_USER, { ...parameters, user_id: Buffer.from(userId) });
}

async function deleteOne(
  queries: Queries,
  key: ConnectionKey,
  now: number,
  audit: AuditEntry | undefined,
): Promise<PostgresConnectionRead | undefined> {
  const row = await queries.first(DELETE, parametersFrom(key));
  if (row === undefined) return undefined;
  await enqueueEvent(queries, "connection.deleted", key, now);
  await writeAudit(queries, audit);
  return row;
}

/** The same as PostgreSQL keeps it: what others write as bytes. */
type PostgresSummaryRow = Omit<SummaryRow, "user_id" | "token_type" | "scope" | "public_key"> & {
  readonly user_id: Buffer;
  readonly token_type: Buffer;
  readonly scope: Buffer;
  readonly public_key: Buffer;
  readonly clock: number;
};

type PostgresBounds = Omit<ScanBounds, "user_start"> & { readonly user_start: Buffer };

const FROM = `SELECT ${SUMMARY_COLUMNS}, refresh_token IS NOT NULL AS has_refresh_token, ${CLOCK} AS clock
  FROM connections JOIN applications ON applications.id = application_id`;

const OF_ONE = createStatement<PostgresBounds, PostgresSummaryRow>(
  "scan_connections_of_application",
  `${FROM}
   WHERE application_id = :application_id AND user_id < :user_end
     AND (user_id, provider_name) > (:user_start, :provider_start)
   ORDER BY application_id, user_id, provider_name LIMIT :limit`,
);

const OF_ALL = createStatement<PostgresBounds, PostgresSummaryRow>(
  "scan_connections",
  `${FROM}
   WHERE (application_id, user_id, provider_name) > (:application_id, :user_start, :provider_start)
   ORDER BY application_id, user_id, provider_name LIMIT :limit`,
);

/** Reads connections in a row, as connection-scan.ts does in SQLite. @param now the clock of this process. */
async function scanConnections({ all }: Queries, range: ConnectionRange, now: number): Promise<ConnectionSummary[]> {
  const bounds = boundsOf(range);
  const parameters = { ...bounds, user_start: Buffer.from(bounds.user_start) };
  const rows = await all(range.applicationId === undefined ? OF_ALL : OF_ONE, parameters);
  return rows.map((row) => summaryFromPostgres(row, now));
}

/** The end of a wait is by the database's clock; it is told by that of this process. */
function summaryFromPostgres({ clock, ...row }: PostgresSummaryRow, now: number): ConnectionSummary {
  return summaryFromRow({
    ...row,
    user_id: row.user_id.toString(),
    token_type: row.token_type.toString(),
    scope: row.scope.toString(),
    public_key: row.public_key.toString(),
    next_try_at: row.next_try_at === null ? null : row.next_try_at - clock + now,
  });
}
