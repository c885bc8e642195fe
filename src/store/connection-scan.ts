import type Database from "better-sqlite3";
import type { ConnectionRange, ConnectionSummary } from "../tokens/connection.js";
import { type ConnectionRow, troubleFrom } from "./connection-row.js";
import { type KeyRange, rangeOfOne, rangeOfPrefix } from "./key-range.js";

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
export function prepareScan(db: Database.Database) {
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
