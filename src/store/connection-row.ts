import type { Connection, NewConnection } from "../oauth/connection.js";
import type { RefusalEvidence, Trouble } from "../oauth/verdict.js";
import { createStatement, first, type Operation } from "./database.js";

/** The columns of `connections` that are written for a new connection. */
export const CONNECTION_COLUMNS = `id, application_id, user_id, provider_name, state, access_token, refresh_token,
  id_token, token_type, scope, origin_parameters, obtained_at, expires_at, version, created_at, updated_at`;

/** The columns that are read of a connection, and the time of the database's clock if it has one. */
export const CONNECTION_READ = `${CONNECTION_COLUMNS}, state_reason, fail_count, last_failed_at, last_error_class,
  next_try_at, lease_until, unanswered_since, trouble, refreshed_at, :clock AS clock`;

/** A row of `connections` as it is written. */
export interface ConnectionRow {
  readonly id: string;
  readonly application_id: string;
  readonly user_id: string;
  readonly provider_name: string;
  readonly state: Connection["state"];
  readonly access_token: Uint8Array;
  readonly refresh_token: Uint8Array | null;
  readonly id_token: Uint8Array | null;
  readonly token_type: string;
  readonly scope: string;
  readonly origin_parameters: string;
  readonly obtained_at: number;
  readonly expires_at: number | null;
  readonly version: number;
  readonly created_at: number;
  readonly updated_at: number;
}

/** A row of `connections` as it is read. */
export interface ConnectionRead extends ConnectionRow {
  readonly state_reason: string | null;
  readonly fail_count: number;
  readonly last_failed_at: number | null;
  readonly last_error_class: string | null;
  readonly next_try_at: number | null;
  readonly lease_until: number | null;
  readonly unanswered_since: number | null;
  /** JSON of a `Trouble`. */
  readonly trouble: string | null;
  readonly refreshed_at: number | null;
  readonly clock?: number;
}

/**
 * Converts a row to a connection. The ends of leases and waits are converted from the store's clock to this process's,
 * since they are compared with its other times. A single object literal: with a spread, a look-up of a row takes a
 * third longer.
 *
 * @param now the clock of this process, milliseconds since the epoch.
 */
export function connectionFromRow(row: ConnectionRead, now: () => number): Connection {
  return {
    id: row.id,
    applicationId: row.application_id,
    userId: row.user_id,
    providerName: row.provider_name,
    state: row.state,
    accessToken: row.access_token,
    refreshToken: row.refresh_token ?? undefined,
    idToken: row.id_token ?? undefined,
    tokenType: row.token_type,
    scope: row.scope,
    originParameters: JSON.parse(row.origin_parameters) as Record<string, string>,
    obtainedAt: row.obtained_at,
    expiresAt: row.expires_at ?? undefined,
    stateReason: row.state_reason ?? undefined,
    failCount: row.fail_count,
    lastFailedAt: row.last_failed_at ?? undefined,
    lastErrorClass: row.last_error_class ?? undefined,
    nextTryAt: localTime(row.next_try_at, row.clock, now),
    leaseUntil: localTime(row.lease_until, row.clock, now),
    unansweredSince: row.unanswered_since ?? undefined,
    trouble: troubleFrom(row.trouble),
    refreshedAt: row.refreshed_at ?? undefined,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** Converts a time of the store's clock to this process's. @param clock undefined when both are the same. */
function localTime(time: number | null, clock: number | undefined, now: () => number): number | undefined {
  if (time === null) return undefined;
  return clock === undefined ? time : time - clock + now();
}

/** A new row: version 1, created and updated now. */
export function rowFromConnection(connection: NewConnection, now: number): ConnectionRow {
  return {
    id: connection.id,
    application_id: connection.applicationId,
    user_id: connection.userId,
    provider_name: connection.providerName,
    state: connection.state,
    access_token: connection.accessToken,
    refresh_token: connection.refreshToken ?? null,
    id_token: connection.idToken ?? null,
    token_type: connection.tokenType,
    scope: connection.scope,
    origin_parameters: JSON.stringify(connection.originParameters),
    obtained_at: connection.obtainedAt,
    expires_at: connection.expiresAt ?? null,
    version: 1,
    created_at: now,
    updated_at: now,
  };
}

/** The columns for a connection's trouble; null without trouble. */
export interface TroubleColumns {
  readonly trouble: string | null;
  readonly refusal: string | null;
  readonly refused_at: number | null;
}

export function columnsFromTrouble(trouble: Trouble | undefined): TroubleColumns {
  return {
    trouble: trouble === undefined ? null : JSON.stringify(trouble),
    refusal: trouble?.refusal?.words ?? null,
    refused_at: trouble?.refusal?.lastAt ?? null,
  };
}

/** Hardly any connection has trouble. */
function troubleFrom(json: string | null): Trouble | undefined {
  return json === null ? undefined : (JSON.parse(json) as Trouble);
}

/** Parameters of the queries for evidence: the connection, and the fingerprint of the provider's words. */
interface EvidenceBounds {
  readonly id: string;
  readonly application_id: string;
  readonly provider_name: string;
  readonly refusal: string;
  readonly since: number;
  /** A day before now. */
  readonly day_start: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** When another connection was last refreshed. */
const OTHERS_REFRESHED_AT = createStatement<EvidenceBounds, { refreshed_at: number }>(`
   SELECT refreshed_at FROM connections
   WHERE application_id = :application_id AND provider_name = :provider_name AND refreshed_at IS NOT NULL AND id <> :id
   ORDER BY refreshed_at DESC LIMIT 1`);

/** How many others were refreshed since; counted to 1000, since more make no difference. */
const OTHERS_REFRESHED = createStatement<EvidenceBounds, { count: number }>(`SELECT count(*) AS count FROM (
   SELECT 1 FROM connections WHERE application_id = :application_id AND provider_name = :provider_name
     AND refreshed_at > :since AND id <> :id LIMIT 1000) AS others`);

/** How many others were refused in the same words within a day, in all applications and in this one. */
const REFUSED = createStatement<EvidenceBounds, { all_refused: number; others_refused: number }>(`
   SELECT count(*) AS all_refused,
     coalesce(sum(CASE WHEN application_id = :application_id AND refused_at > :since THEN 1 ELSE 0 END), 0) AS others_refused
   FROM (SELECT application_id, refused_at FROM connections WHERE provider_name = :provider_name AND refusal = :refusal
     AND refused_at > :day_start AND id <> :id ORDER BY refused_at DESC LIMIT 1000) AS refused`);

/** Reads what other connections show about a refusal. Indexes and limits bound its cost. */
export function* findEvidence(
  { id, applicationId, providerName }: Connection,
  refusal: string,
  since: number,
  now: number,
): Operation<RefusalEvidence> {
  const of = { id, application_id: applicationId, provider_name: providerName };
  const bounds = { ...of, refusal, since, day_start: now - DAY_MS };
  const at = (yield* first(OTHERS_REFRESHED_AT, bounds))?.refreshed_at;
  const counts = yield* first(REFUSED, { ...bounds, since: at ?? 0 });
  return {
    othersRefreshedAt: at,
    othersRefreshed: (yield* first(OTHERS_REFRESHED, bounds))?.count ?? 0,
    othersRefused: counts?.others_refused ?? 0,
    allRefused: counts?.all_refused ?? 0,
  };
}
