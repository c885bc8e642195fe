import type { AuditEntry } from "../model/audit.js";
import { UnconfirmedWriteError } from "../model/errors.js";
import {
  type Connection,
  type ConnectionFilter,
  type ConnectionKey,
  type ConnectionRange,
  type ConnectionStore,
  type ConnectionSummary,
  type DeletedConnection,
  type NewConnection,
  type NewerConnection,
  UnconfirmedDeletionError,
} from "../oauth/connection.js";
import { writeAudit } from "./audit-records.js";
import {
  attemptsFrom,
  CONNECTION_COLUMNS,
  CONNECTION_READ,
  type ConnectionRead,
  type ConnectionRow,
  connectionFromRow,
  rowFromConnection,
} from "./connection-row.js";
import {
  all,
  createStatement,
  type Database,
  first,
  type KeyRange,
  type Operation,
  rangeOfOne,
  rangeOfPrefix,
} from "./database.js";
import { createRefreshStore } from "./refreshing.js";
import { enqueueEvent } from "./webhooks.js";

/** Most connection rows that the SQLite cache keeps, with their opened tokens: some 10 MiB. */
const MAX_KEPT = 4000;

interface CachedConnectionStore extends ConnectionStore {
  /** The look-up of every call. Decisions on a refresh use `find()` of the store itself. */
  readonly lookup: Pick<ConnectionStore, "find">;
}

/** Opens the table. */
export function createConnectionStore(database: Database): CachedConnectionStore {
  const { now } = database;
  const read = (row: ConnectionRead) => connectionFromRow(row, now);
  const readOne = (row: ConnectionRead | undefined) => row && read(row);
  const kept = database.createCache<ConnectionKey, Connection>({
    maxRows: MAX_KEPT,
    textOf,
    *find(key) {
      return readOne(yield* first(FIND, key));
    },
    *findMany(keys) {
      const found = (yield* all(FIND_MANY, manyParametersFrom(keys))).map(read);
      const byText = new Map(found.map((connection) => [textOf(connection), connection]));
      return keys.map((key) => byText.get(textOf(key)));
    },
    *findByIds(ids) {
      return (yield* all(FIND_BY_IDS, { ids })).map(read);
    },
  });
  const forget = (key: ConnectionKey) => () => kept.forget(key);
  return {
    find: kept.find,
    lookup: { find: kept.lookUp },
    put: async (connection, at, audit) =>
      read(await database.write(() => put(connection, at, audit), forget(connection))),
    putNewer: (connections, at) =>
      database.write(
        () => putAll(connections, at),
        () => connections.forEach(({ connection }) => void kept.forget(connection)),
      ),
    list: async (filter) => (await database.read(() => list(filter))).map(read),
    async scan(range) {
      const statement = range.applicationId === undefined ? SCAN : SCAN_OF_APPLICATION;
      const rows = await database.read(() => all(statement, boundsOf(range)));
      return rows.map((row) => summaryFromRow(row, now));
    },
    async scanUser(userId, after, limit) {
      const { applicationId = "", providerName = "" } = after ?? {};
      const bounds = { userId, applicationId, providerName, limit };
      return (await database.read(() => all(SCAN_OF_USER, bounds))).map((row) => summaryFromRow(row, now));
    },
    async refreshesOf(key) {
      return attemptsFrom((await database.read(() => first(REFRESHES, key)))?.refreshes, now());
    },
    userOf: async (id) => (await database.read(() => first(USER_OF, { id })))?.userId,
    async delete(key, at, audit) {
      let deleted = undefined as DeletedConnection | undefined;
      const work = function* () {
        const row = yield* deleteOne(key, at, audit);
        deleted = row && { ...read(row), previousRefreshToken: row.previousRefreshToken };
      };
      await database.write(work, forget(key)).catch((error: unknown) => {
        if (deleted === undefined || !(error instanceof UnconfirmedWriteError)) throw error;
        throw new UnconfirmedDeletionError(deleted, error);
      });
      return deleted;
    },
    ...createRefreshStore(database, { forget, forgetLease: (key) => () => kept.forgetFound(key) }),
  };
}

/** A unique text per key: only user ids may contain any character, NUL included. */
function textOf({ applicationId, userId, providerName }: ConnectionKey): string {
  return `${applicationId}\0${userId}\0${providerName}`;
}

const FIND = createStatement<ConnectionKey, ConnectionRead>(`SELECT ${CONNECTION_READ} FROM connections
   WHERE application_id = :application_id AND user_id = :user_id AND provider_name = :provider_name`);

interface ManyKeys {
  readonly applicationIds: readonly string[];
  readonly userIds: readonly Buffer[];
  readonly providerNames: readonly string[];
}

/** This and the next statement are only for PostgreSQL's cache. */
const FIND_MANY = createStatement<ManyKeys, ConnectionRead>(`SELECT ${CONNECTION_READ}
   FROM unnest(:application_ids::text[], :user_ids::bytea[], :provider_names::text[]) AS asked (application, "user", provider)
   JOIN connections ON application_id = asked.application AND user_id = asked."user" AND provider_name = asked.provider`);

const FIND_BY_IDS = createStatement<{ ids: readonly string[] }, ConnectionRead>(
  `SELECT ${CONNECTION_READ} FROM connections WHERE id = ANY(:ids::text[])`,
);

/**
 * When a user connects again, everything known about the old tokens is reset, since it says nothing about the new ones.
 * The row gets the new id, so that late writes of a refresh of the old tokens find no row.
 */
const PUT_SQL = `INSERT INTO connections (${CONNECTION_COLUMNS})
   VALUES (:id, :application_id, :user_id, :provider_name, :state, :access_token, :refresh_token,
     :id_token, :token_type, :scope, :origin_parameters, :obtained_at, :expires_at, :version, :created_at, :updated_at)
   ON CONFLICT (application_id, user_id, provider_name) DO UPDATE SET
     id = excluded.id, state = excluded.state, state_reason = NULL,
     access_token = excluded.access_token, refresh_token = excluded.refresh_token,
     previous_refresh_token = NULL, id_token = excluded.id_token,
     token_type = excluded.token_type, scope = excluded.scope, origin_parameters = excluded.origin_parameters,
     obtained_at = excluded.obtained_at, expires_at = excluded.expires_at, version = connections.version + 1,
     lease_owner = NULL, lease_until = NULL, unanswered_since = NULL, fail_count = 0, next_try_at = NULL,
     last_error_class = NULL, trouble = NULL, refusal = NULL, refused_at = NULL, refreshed_at = NULL,
     last_failed_at = NULL, refreshes = NULL, updated_at = excluded.updated_at`;

const PUT = createStatement<ConnectionRow, ConnectionRead>(`${PUT_SQL} RETURNING ${CONNECTION_READ}`);

/** For a connection whose first token was never fetched, the age of the row counts. */
const PUT_NEWER = createStatement<ConnectionRow & { asOf: number }, { id: string }>(`${PUT_SQL}
   WHERE CASE WHEN connections.obtained_at = 0 THEN connections.updated_at ELSE connections.obtained_at END < :as_of
   RETURNING id`);

const LIST = createStatement<{ applicationId: string; limit: number }, ConnectionRead>(`
   SELECT ${CONNECTION_READ} FROM connections
   WHERE application_id = :application_id ORDER BY user_id, provider_name LIMIT :limit`);

const LIST_OF_USER = createStatement<{ applicationId: string; userId: string; limit: number }, ConnectionRead>(`
   SELECT ${CONNECTION_READ} FROM connections
   WHERE application_id = :application_id AND user_id = :user_id ORDER BY provider_name LIMIT :limit`);

const DELETE = createStatement<ConnectionKey, DeletedRow>(`DELETE FROM connections
   WHERE application_id = :application_id AND user_id = :user_id AND provider_name = :provider_name
   RETURNING ${CONNECTION_READ}, previous_refresh_token`);

interface DeletedRow extends ConnectionRead {
  readonly previousRefreshToken: Uint8Array | undefined;
}

function manyParametersFrom(keys: readonly ConnectionKey[]): ManyKeys {
  return {
    applicationIds: keys.map(({ applicationId }) => applicationId),
    userIds: keys.map(({ userId }) => Buffer.from(userId)),
    providerNames: keys.map(({ providerName }) => providerName),
  };
}

function* put(connection: NewConnection, now: number, audit: AuditEntry | undefined): Operation<ConnectionRead> {
  yield* enqueueEvent("connection.created", connection, now);
  yield* writeAudit(audit);
  return (yield* first(PUT, rowFromConnection(connection, now))) as ConnectionRead;
}

function* putAll(connections: readonly NewerConnection[], now: number): Operation<boolean[]> {
  const stored: boolean[] = [];
  for (const { connection, asOf, audit } of connections) {
    const row = yield* first(PUT_NEWER, { ...rowFromConnection(connection, now), asOf });
    stored.push(row !== undefined);
    if (row === undefined) continue;
    yield* enqueueEvent("connection.created", connection, now);
    yield* writeAudit(audit);
  }
  return stored;
}

function list({ applicationId, userId, limit }: ConnectionFilter): Operation<ConnectionRead[]> {
  const parameters = { applicationId, limit };
  return userId === undefined ? all(LIST, parameters) : all(LIST_OF_USER, { ...parameters, userId });
}

function* deleteOne(key: ConnectionKey, now: number, audit: AuditEntry | undefined): Operation<DeletedRow | undefined> {
  const row = yield* first(DELETE, key);
  if (row === undefined) return undefined;
  yield* enqueueEvent("connection.deleted", key, now);
  yield* writeAudit(audit);
  return row;
}

type SummaryRow = Omit<ConnectionSummary, "originParameters" | "trouble" | "hasRefreshToken"> &
  Pick<ConnectionRead, "originParameters" | "trouble" | "clock"> & { readonly hasRefreshToken: boolean | number };

/** The exclusive start of a range of connections, and the exclusive end of a range of users. */
interface ScanBounds {
  readonly applicationId: string;
  readonly userStart: string;
  /** Empty sorts before every provider's name. */
  readonly providerStart: string;
  readonly userEnd: Buffer;
  readonly limit: number;
}

/**
 * Pages by key, so that the last page costs no more than the first one. LEFT JOIN makes the planner read connections in
 * the order of their index, and look up the application of each.
 */
const SCANNED = `SELECT connections.id, application_id, user_id, provider_name, connections.state, token_type, scope,
    origin_parameters, obtained_at, expires_at, state_reason, fail_count, last_failed_at, last_error_class, next_try_at,
    trouble, refreshed_at, connections.created_at, connections.updated_at, applications.public_key,
    refresh_token IS NOT NULL AS has_refresh_token, :clock AS clock
  FROM connections LEFT JOIN applications ON applications.id = application_id`;

const SCAN_OF_APPLICATION = createStatement<ScanBounds, SummaryRow>(`${SCANNED}
   WHERE application_id = :application_id AND user_id < CAST(:user_end AS KEY)
     AND (user_id, provider_name) > (:user_start, :provider_start)
   ORDER BY application_id, user_id, provider_name LIMIT :limit`);

const SCAN = createStatement<ScanBounds, SummaryRow>(`${SCANNED}
   WHERE (application_id, user_id, provider_name) > (:application_id, :user_start, :provider_start)
   ORDER BY application_id, user_id, provider_name LIMIT :limit`);

const SCAN_OF_USER = createStatement<ConnectionKey & { readonly limit: number }, SummaryRow>(`${SCANNED}
   WHERE user_id = :user_id AND (application_id, provider_name) > (:application_id, :provider_name)
   ORDER BY user_id, application_id, provider_name LIMIT :limit`);

/** Read separately, so that calls and lists do not pay for it. */
const REFRESHES = createStatement<ConnectionKey, { refreshes: string | undefined }>(`SELECT refreshes FROM connections
   WHERE application_id = :application_id AND user_id = :user_id AND provider_name = :provider_name`);

const USER_OF = createStatement<{ id: string }, { userId: string }>("SELECT user_id FROM connections WHERE id = :id");

/** Converts a requested range to the bounds of a scan. */
function boundsOf({ applicationId, user, after, limit }: ConnectionRange): ScanBounds {
  const users: KeyRange = "id" in user ? rangeOfOne(user.id) : rangeOfPrefix(user.prefix, undefined);
  return {
    applicationId: after?.applicationId ?? applicationId ?? "",
    userStart: after?.userId ?? users.start,
    providerStart: after?.providerName ?? "",
    userEnd: users.end,
    limit,
  };
}

function summaryFromRow(row: SummaryRow, now: () => number): ConnectionSummary {
  return { ...connectionFromRow(row, now), hasRefreshToken: Boolean(row.hasRefreshToken) };
}
