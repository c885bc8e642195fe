import { randomUUID } from "node:crypto";
import type Database from "better-sqlite3";
import type { AuditEntry } from "../model/audit.js";
import type { ConnectionKey } from "../oauth/connection.js";
import {
  type DueEvent,
  payloadFromEvent,
  type WebhookBacklog,
  type WebhookEndpoint,
  type WebhookEventType,
  type WebhookStore,
} from "../webhooks/webhook-store.js";
import type { Attempt } from "./attempt.js";
import { prepareWriteAudit } from "./audit-records.js";

/** Webhook endpoints and undelivered events in SQLite. */
export function createWebhookStore(db: Database.Database, attempt: Attempt): WebhookStore {
  const { find, put, remove } = prepareEndpoints(db);
  const { hasDue, claim, finish, putOff } = prepareClaims(db);
  const backlog = prepareBacklog(db);
  return {
    findEndpoint: (applicationId) => attempt.read(() => find(applicationId)),
    putEndpoint: (endpoint, audit) => attempt.write(() => put(endpoint, audit)),
    deleteEndpoint: (applicationId, audit) => attempt.write(() => remove(applicationId, audit)),
    // Asked every second by every process: the write lock is taken only where there is something to write.
    claimDue: async (limit, until, now) =>
      (await attempt.read(() => hasDue(now))) ? attempt.write(() => claim(limit, until, now)) : [],
    finish: (event, freeAt) => attempt.write(() => finish(event, freeAt)),
    putOff: (event, nextTryAt, freeAt) => attempt.write(() => putOff(event, nextTryAt, freeAt)),
    backlog: (applicationId) => attempt.read(() => backlog(applicationId)),
  };
}

function prepareEndpoints(db: Database.Database) {
  const select = db.prepare<[string], EndpointRow>("SELECT * FROM webhook_endpoints WHERE id = ?");
  const upsert = db.prepare<[EndpointRow]>(`
    INSERT INTO webhook_endpoints (id, uri, secret, updated_at) VALUES (:id, :uri, :secret, :updated_at)
    ON CONFLICT (id) DO UPDATE SET uri = excluded.uri, secret = excluded.secret, updated_at = excluded.updated_at`);
  const deleteEvents = db.prepare<[string]>("DELETE FROM webhook_events WHERE application_id = ?");
  const writeAudit = prepareWriteAudit(db);
  const deleteEndpoint = db.prepare<[string]>("DELETE FROM webhook_endpoints WHERE id = ?");
  return {
    find: (applicationId: string): WebhookEndpoint | undefined => {
      const row = select.get(applicationId);
      return row && endpointFromRow(row);
    },
    put: ({ applicationId, uri, secret, updatedAt }: WebhookEndpoint, audit: AuditEntry | undefined): void => {
      upsert.run({ id: applicationId, uri, secret, updated_at: updatedAt });
      writeAudit(audit);
    },
    remove: (applicationId: string, audit: AuditEntry | undefined): boolean => {
      deleteEvents.run(applicationId);
      const isDeleted = deleteEndpoint.run(applicationId).changes > 0;
      if (isDeleted) writeAudit(audit);
      return isDeleted;
    },
  };
}

function prepareBacklog(db: Database.Database) {
  const statement = db.prepare<[string], { waiting: number; oldest: number | null }>(
    "SELECT count(*) AS waiting, min(created_at) AS oldest FROM webhook_events WHERE application_id = ?",
  );
  return (applicationId: string): WebhookBacklog => {
    const row = statement.get(applicationId);
    return { waiting: row?.waiting ?? 0, oldestAt: row?.oldest ?? undefined };
  };
}

/** A row of webhook_endpoints, as far as others need it. */
interface EndpointRow {
  readonly id: string;
  readonly uri: string;
  readonly secret: Uint8Array;
  readonly updated_at: number;
}

interface EventRow {
  readonly id: string;
  readonly type: string;
  readonly payload: string;
  readonly attempts: number;
  readonly created_at: number;
}

/** Events among which the oldest is looked for: those that were due first. More would make each claim dearer. */
const LOOK_AT = 100;

/** The endpoint that a row tells of. */
function endpointFromRow({ id, uri, secret, updated_at }: EndpointRow): WebhookEndpoint {
  return { applicationId: id, uri, secret, updatedAt: updated_at };
}

/** Prepares what delivering needs: the claim is on the endpoint, so that its events are delivered one after another. */
function prepareClaims(db: Database.Database) {
  const select = prepareSelect(db);
  const due = db.prepare<[number]>("SELECT 1 FROM webhook_events WHERE next_try_at <= ? LIMIT 1");
  const leave = db.prepare<[number, string, number]>(
    "UPDATE webhook_endpoints SET free_at = ? WHERE id = ? AND free_at = ?",
  );
  const remove = db.prepare<[string]>("DELETE FROM webhook_events WHERE id = ?");
  const delay = db.prepare<[number, string]>("UPDATE webhook_events SET next_try_at = ? WHERE id = ?");
  // Whoever was too slow has lost the claim: it must not end that of another.
  const free = ({ endpoint, claimedUntil }: DueEvent, freeAt: number) =>
    void leave.run(freeAt, endpoint.applicationId, claimedUntil);
  return {
    // Mostly nothing is: then it is one look into an index.
    hasDue: (now: number): boolean => due.get(now) !== undefined && select.get({ now, limit: 1 }) !== undefined,
    claim: prepareClaim(db, select),
    finish: (event: DueEvent, freeAt: number): void => {
      remove.run(event.id);
      free(event, freeAt);
    },
    putOff: (event: DueEvent, nextTryAt: number, freeAt: number): void => {
      delay.run(nextTryAt, event.id);
      free(event, freeAt);
    },
  };
}

type Select = ReturnType<typeof prepareSelect>;

/**
 * Goes from one application that has events waiting to the next by the index of events, so that neither the number of
 * endpoints nor that of events counts. Row ids are in order of writing.
 */
function prepareSelect(db: Database.Database) {
  return db.prepare<[{ now: number; limit: number }], { application_id: string; event_id: string }>(`
    WITH RECURSIVE told(id) AS (
      SELECT min(application_id) FROM webhook_events
      UNION ALL
      SELECT (SELECT min(application_id) FROM webhook_events WHERE application_id > told.id) FROM told
      WHERE told.id IS NOT NULL)
    SELECT endpoint.id AS application_id, (
      SELECT id FROM (
        SELECT rowid AS place, id FROM webhook_events
        WHERE application_id = endpoint.id AND next_try_at <= :now ORDER BY next_try_at LIMIT ${LOOK_AT}
      ) ORDER BY place LIMIT 1) AS event_id
    FROM told JOIN webhook_endpoints AS endpoint USING (id) JOIN applications USING (id)
    WHERE endpoint.free_at <= :now AND applications.state = 'ACTIVE' AND event_id IS NOT NULL
    ORDER BY endpoint.free_at LIMIT :limit`);
}

function prepareClaim(db: Database.Database, select: Select) {
  const takeEndpoint = db.prepare<[number, string], EndpointRow>(
    "UPDATE webhook_endpoints SET free_at = ? WHERE id = ? RETURNING id, uri, secret, updated_at",
  );
  const takeEvent = db.prepare<[string], EventRow>(`
    UPDATE webhook_events SET attempts = attempts + 1 WHERE id = ?
    RETURNING id, payload ->> '$.type' AS type, payload, attempts, created_at`);
  return (limit: number, until: number, now: number): DueEvent[] =>
    select.all({ now, limit }).map(({ application_id, event_id }) => {
      const { created_at, ...event } = takeEvent.get(event_id) as EventRow;
      const endpoint = endpointFromRow(takeEndpoint.get(until, application_id) as EndpointRow);
      return { ...event, createdAt: created_at, endpoint, claimedUntil: until };
    });
}

/** Writes an event down; called inside the transaction of the change that it tells of. */
export type EnqueueEvent = (
  type: WebhookEventType,
  connection: ConnectionKey,
  now: number,
  reason?: string | undefined,
) => void;

/** Prepares the writing of events; an application without an endpoint gets none. */
export function prepareEnqueueEvent(db: Database.Database): EnqueueEvent {
  const endpoint = db.prepare<[string], { public_key: string }>(`
    SELECT public_key FROM applications JOIN webhook_endpoints USING (id) WHERE id = ?`);
  const insert = db.prepare<[string, string, string, number, number]>(`
    INSERT INTO webhook_events (id, application_id, payload, next_try_at, created_at) VALUES (?, ?, ?, ?, ?)`);
  return (type, { applicationId, userId, providerName }, now, reason) => {
    const publicKey = endpoint.get(applicationId)?.public_key;
    if (publicKey === undefined) return;
    const payload = payloadFromEvent(type, { publicKey, userId, providerName, reason }, now);
    insert.run(`msg_${randomUUID()}`, applicationId, payload, now, now);
  };
}
