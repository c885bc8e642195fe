import type Database from "better-sqlite3";
import type { AuditEntry } from "../model/audit.js";
import type { WebhookBacklog, WebhookEndpoint, WebhookStore } from "../webhooks/webhook-store.js";
import type { Attempt } from "./attempt.js";
import { prepareWriteAudit } from "./audit-records.js";
import { type EndpointRow, endpointFromRow, prepareClaims } from "./webhook-claims.js";

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
