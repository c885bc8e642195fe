import type Database from "better-sqlite3";
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
import type { Attempt } from "./attempt.js";
import { prepareWriteAudit, type WriteAudit } from "./audit-records.js";
import {
  CONNECTION_COLUMNS,
  type ConnectionRow,
  type ConnectionValues,
  connectionFromRow,
  rowFromConnection,
  rowFromValues,
  troubleFrom,
} from "./connection-row.js";
import { type KeyRange, rangeOfOne, rangeOfPrefix } from "./key-range.js";
import { createRenewalStore } from "./renewals.js";
import type { RowCaches } from "./row-cache.js";
import { type EnqueueEvent, prepareEnqueueEvent } from "./webhooks.js";

/** Connections that are kept as they were read, with their opened tokens: some 10 MiB of them. */
const MAX_KEPT = 4000;

interface ConnectionStoreOptions {
  readonly caches: RowCaches;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Connections in SQLite. */
export function createConnectionStore(
  db: Database.Database,
  attempt: Attempt,
  { caches, now }: ConnectionStoreOptions,
): ConnectionStore {
  const enqueue = prepareEnqueueEvent(db);
  const kept = caches.create<Connection>(MAX_KEPT);
  const forget = (key: ConnectionKey) => () => kept.forget(textOf(key));
  const find = prepareFind(db);
  const writeAudit = prepareWriteAudit(db);
  const put = preparePut(db, enqueue, writeAudit);
  const list = prepareList(db);
  const scan = prepareScan(db);
  const deleteOne = prepareDelete(db, enqueue, writeAudit);
  return {
    find: (key) => attempt.lookUp(() => kept.find(textOf(key), () => find(key))),
    put: (connection, at, audit) => attempt.write(() => put(connection, at, audit), forget(connection)),
    list: (filter) => attempt.read(() => list(filter)),
    scan: (range) => attempt.read(() => scan(range)),
    delete: (key, at, audit) => attempt.write(() => deleteOne(key, at, audit), forget(key)),
    ...createRenewalStore(db, attempt, { enqueue, forget, now }),
  };
}

/** One text for each key: only user ids may have any character in them. */
function textOf({ applicationId, userId, providerName }: ConnectionKey): string {
  return `${applicationId}\0${userId}\0${providerName}`;
}

type KeyParameters = [applicationId: string, userId: string, providerName: string];

function prepareFind(db: Database.Database) {
  // Raw: better-sqlite3 takes a third longer to make an object of so many columns.
  const statement = db
    .prepare<KeyParameters, ConnectionValues>(`
    SELECT ${CONNECTION_COLUMNS} FROM connections
    WHERE application_id = ? AND user_id = ? AND provider_name = ?`)
    .raw();
  return ({ applicationId, userId, providerName }: ConnectionKey): Connection | undefined => {
    const values = statement.get(applicationId, userId, providerName) as ConnectionValues | undefined;
    return values && connectionFromRow(rowFromValues(values));
  };
}

/**
 * A connection that is made again starts afresh: what is known of the old tokens says nothing of the new ones. It gets
 * the new id, so that whatever a renewal of the old tokens still writes finds no row.
 */
function preparePut(db: Database.Database, enqueue: EnqueueEvent, writeAudit: WriteAudit) {
  const statement = db.prepare<[ConnectionRow], ConnectionRow>(`
    INSERT INTO connections (${CONNECTION_COLUMNS})
    VALUES (:id, :application_id, :user_id, :provider_name, :state, :access_token, :refresh_token,
      :id_token, :token_type, :scope, :origin_parameters, :obtained_at, :expires_at, :state_reason,
      :fail_count, :last_failed_at, :last_error_class, :next_try_at, :lease_until,
      :unanswered_since, :trouble, :version, :created_at, :updated_at)
    ON CONFLICT (application_id, user_id, provider_name) DO UPDATE SET
      id = excluded.id, state = excluded.state, state_reason = NULL,
      access_token = excluded.access_token, refresh_token = excluded.refresh_token,
      previous_refresh_token = NULL, id_token = excluded.id_token,
      token_type = excluded.token_type, scope = excluded.scope, origin_parameters = excluded.origin_parameters,
      obtained_at = excluded.obtained_at, expires_at = excluded.expires_at, version = version + 1,
      lease_owner = NULL, lease_until = NULL, unanswered_since = NULL, fail_count = 0, next_try_at = NULL,
      last_error_class = NULL, trouble = NULL, refusal = NULL, refused_at = NULL, refreshed_at = NULL,
      last_failed_at = NULL,
      updated_at = excluded.updated_at
    RETURNING ${CONNECTION_COLUMNS}`);
  return (connection: NewConnection, now: number, audit: AuditEntry | undefined): Connection => {
    enqueue("connection.created", connection, now);
    writeAudit(audit);
    return connectionFromRow(statement.get(rowFromConnection(connection, now)) as ConnectionRow);
  };
}

function prepareList(db: Database.Database) {
  const all = db.prepare<[string, number], ConnectionRow>(`
    SELECT ${CONNECTION_COLUMNS} FROM connections
    WHERE application_id = ? ORDER BY user_id, provider_name LIMIT ?`);
  const ofUser = db.prepare<[string, string, number], ConnectionRow>(`
    SELECT ${CONNECTION_COLUMNS} FROM connections
    WHERE application_id = ? AND user_id = ? ORDER BY provider_name LIMIT ?`);
  return ({ applicationId, userId, limit }: ConnectionFilter): Connection[] => {
    const rows = userId === undefined ? all.all(applicationId, limit) : ofUser.all(applicationId, userId, limit);
    return rows.map(connectionFromRow);
  };
}

function prepareDelete(db: Database.Database, enqueue: EnqueueEvent, writeAudit: WriteAudit) {
  const statement = db.prepare<KeyParameters, ConnectionRow>(`
    DELETE FROM connections WHERE application_id = ? AND user_id = ? AND provider_name = ?
    RETURNING ${CONNECTION_COLUMNS}`);
  return (key: ConnectionKey, now: number, audit: AuditEntry | undefined): Connection | undefined => {
    const row = statement.get(key.applicationId, key.userId, key.providerName);
    if (row === undefined) return undefined;
    enqueue("connection.deleted", key, now);
    writeAudit(audit);
    return connectionFromRow(row);
  };
}

/** The columns that a `ConnectionSummary` is made of: no sealed one is read. */
export const SUMMARY_COLUMNS = `connections.id, application_id, user_id, provider_name, connections.state, token_type,
  scope, origin_parameters, obtained_at, expires_at, state_reason, fail_count, last_failed_at, last_error_class,
  next_try_at, trouble, connections.created_at, connections.updated_at, applications.public_key`;

/** What is read of a connection to show it. */
export interface SummaryRow
  extends Omit<
    ConnectionRow,
    "access_token" | "refresh_token" | "id_token" | "lease_until" | "unanswered_since" | "version"
  > {
  readonly public_key: string;
  readonly has_refresh_token: boolean | number;
}

/** Where a range of connections begins, without the connection of that key itself, and where one of users ends. */
export interface ScanBounds {
  readonly application_id: string;
  readonly user_start: string;
  /** No provider's name is empty. */
  readonly provider_start: string;
  readonly user_end: Buffer;
  readonly limit: number;
}

/** Prepares the reading of connections in a row: by key alone, so that the last page costs what the first one does. */
function prepareScan(db: Database.Database) {
  // CROSS: connections are read in the order of their index, and each brings its application.
  const from = `SELECT ${SUMMARY_COLUMNS}, refresh_token IS NOT NULL AS has_refresh_token
    FROM connections CROSS JOIN applications ON applications.id = application_id`;
  const ofOne = db.prepare<[ScanBounds], SummaryRow>(`${from}
    WHERE application_id = :application_id AND user_id < CAST(:user_end AS TEXT)
      AND (user_id, provider_name) > (:user_start, :provider_start)
    ORDER BY application_id, user_id, provider_name LIMIT :limit`);
  const ofAll = db.prepare<[ScanBounds], SummaryRow>(`${from}
    WHERE (application_id, user_id, provider_name) > (:application_id, :user_start, :provider_start)
    ORDER BY application_id, user_id, provider_name LIMIT :limit`);
  return (range: ConnectionRange): ConnectionSummary[] =>
    (range.applicationId === undefined ? ofAll : ofOne).all(boundsOf(range)).map(summaryFromRow);
}

/** Turns what is to be shown into what is to be read. */
export function boundsOf({ applicationId, user, after, limit }: ConnectionRange): ScanBounds {
  const users: KeyRange = "id" in user ? rangeOfOne(user.id) : rangeOfPrefix(user.prefix, undefined);
  return {
    application_id: after?.applicationId ?? applicationId ?? "",
    user_start: after?.userId ?? users.start,
    provider_start: after?.providerName ?? "",
    user_end: users.end,
    limit,
  };
}

export function summaryFromRow(row: SummaryRow): ConnectionSummary {
  return {
    id: row.id,
    applicationId: row.application_id,
    publicKey: row.public_key,
    userId: row.user_id,
    providerName: row.provider_name,
    state: row.state,
    tokenType: row.token_type,
    scope: row.scope,
    originParameters: JSON.parse(row.origin_parameters) as Record<string, string>,
    obtainedAt: row.obtained_at,
    expiresAt: row.expires_at ?? undefined,
    stateReason: row.state_reason ?? undefined,
    failCount: row.fail_count,
    lastFailedAt: row.last_failed_at ?? undefined,
    lastErrorClass: row.last_error_class ?? undefined,
    nextTryAt: row.next_try_at ?? undefined,
    trouble: troubleFrom(row.trouble),
    hasRefreshToken: Boolean(row.has_refresh_token),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
