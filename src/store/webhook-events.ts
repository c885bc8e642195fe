import { randomUUID } from "node:crypto";
import type Database from "better-sqlite3";
import type { ConnectionKey } from "../tokens/connection.js";
import { payloadFromEvent, type WebhookEventType } from "../webhooks/event.js";

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
