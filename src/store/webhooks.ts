import type Database from "better-sqlite3";
import type { DueEvent, WebhookBacklog, WebhookEndpoint, WebhookStore } from "../webhooks/webhook-store.js";
import type { Attempt } from "./attempt.js";

/** Webhook endpoints and undelivered events in SQLite. */
export function createWebhookStore(db: Database.Database, attempt: Attempt): WebhookStore {
  const { find, put, remove } = prepareEndpoints(db);
  const claim = prepareClaim(db);
  const removeEvent = db.prepare<[string]>("DELETE FROM webhook_events WHERE id = ?");
  const retry = db.prepare<[number, string]>("UPDATE webhook_events SET next_try_at = ? WHERE id = ?");
  const backlog = prepareBacklog(db);
  return {
    findEndpoint: (applicationId) => attempt.read(() => find(applicationId)),
    putEndpoint: (endpoint) => attempt.write(() => put(endpoint)),
    deleteEndpoint: (applicationId) => attempt.write(() => remove(applicationId)),
    claimDue: (limit, until, now) => attempt.write(() => claim(limit, until, now)),
    remove: (id) => attempt.write(() => void removeEvent.run(id)),
    retryAt: (id, nextTryAt) => attempt.write(() => void retry.run(nextTryAt, id)),
    backlog: (applicationId) => attempt.read(() => backlog(applicationId)),
  };
}

interface EndpointRow {
  readonly id: string;
  readonly uri: string;
  readonly secret: Uint8Array;
  readonly updated_at: number;
}

function prepareEndpoints(db: Database.Database) {
  const select = db.prepare<[string], EndpointRow>("SELECT * FROM webhook_endpoints WHERE id = ?");
  const upsert = db.prepare<[EndpointRow]>(`
    INSERT INTO webhook_endpoints (id, uri, secret, updated_at) VALUES (:id, :uri, :secret, :updated_at)
    ON CONFLICT (id) DO UPDATE SET uri = excluded.uri, secret = excluded.secret, updated_at = excluded.updated_at`);
  const deleteEvents = db.prepare<[string]>("DELETE FROM webhook_events WHERE application_id = ?");
  const deleteEndpoint = db.prepare<[string]>("DELETE FROM webhook_endpoints WHERE id = ?");
  return {
    find: (applicationId: string): WebhookEndpoint | undefined => {
      const row = select.get(applicationId);
      return row && { applicationId: row.id, uri: row.uri, secret: row.secret, updatedAt: row.updated_at };
    },
    put: ({ applicationId, uri, secret, updatedAt }: WebhookEndpoint): void => {
      upsert.run({ id: applicationId, uri, secret, updated_at: updatedAt });
    },
    remove: (applicationId: string): boolean => {
      deleteEvents.run(applicationId);
      return deleteEndpoint.run(applicationId).changes > 0;
    },
  };
}

function prepareClaim(db: Database.Database) {
  const statement = db.prepare<
    [number, number, number],
    { id: string; application_id: string; payload: string; attempts: number; created_at: number }
  >(`
    UPDATE webhook_events SET attempts = attempts + 1, next_try_at = ?
    WHERE id IN (SELECT id FROM webhook_events WHERE next_try_at <= ? ORDER BY next_try_at LIMIT ?)
    RETURNING id, application_id, payload, attempts, created_at`);
  return (limit: number, until: number, now: number): DueEvent[] =>
    statement
      .all(until, now, limit)
      .map(({ id, application_id, payload, attempts, created_at }) => ({
        id,
        applicationId: application_id,
        payload,
        attempts,
        createdAt: created_at,
      }))
      .sort((one, other) => one.createdAt - other.createdAt);
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
