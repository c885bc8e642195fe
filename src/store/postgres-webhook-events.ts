import { randomUUID } from "node:crypto";
import type { ConnectionKey } from "../tokens/connection.js";
import { payloadFromEvent, type WebhookEventType } from "../webhooks/event.js";
import type { Queries } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

const ENDPOINT = createStatement<{ id: string }, { public_key: Buffer }>(
  "find_event_receiver",
  "SELECT public_key FROM applications JOIN webhook_endpoints USING (id) WHERE id = :id",
);

const INSERT = createStatement<{ id: string; application_id: string; payload: string; now: number }>(
  "enqueue_event",
  `INSERT INTO webhook_events (id, application_id, payload, next_try_at, created_at)
   VALUES (:id, :application_id, :payload, :now, :now)`,
);

/**
 * Writes an event down, in the transaction of the change that it tells of; an application without an endpoint gets
 * none.
 */
export async function enqueueEvent(
  { first, run }: Queries,
  type: WebhookEventType,
  { applicationId, userId, providerName }: ConnectionKey,
  now: number,
  reason?: string | undefined,
): Promise<void> {
  const endpoint = await first(ENDPOINT, { id: applicationId });
  if (endpoint === undefined) return;
  const subject = { publicKey: endpoint.public_key.toString(), userId, providerName, reason };
  const payload = payloadFromEvent(type, subject, now);
  await run(INSERT, { id: `msg_${randomUUID()}`, application_id: applicationId, payload, now });
}
