import type { DueEvent, WebhookEndpoint } from "../webhooks/webhook-store.js";
import type { Queries } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

/** A row of webhook_endpoints; the URI is text of others, and so bytes. */
export interface PostgresEndpointRow {
  readonly id: string;
  readonly uri: Buffer;
  readonly secret: Uint8Array;
  readonly updated_at: number;
}

/** The endpoint that a row tells of. */
export function endpointFromPostgres({ id, uri, secret, updated_at }: PostgresEndpointRow): WebhookEndpoint {
  return { applicationId: id, uri: uri.toString(), secret, updatedAt: updated_at };
}

/** Events among which the oldest is looked for: those that were due first. More would make each claim dearer. */
const LOOK_AT = 100;

/** Mostly nothing is due: then it is one look into an index. */
const HAS_DUE = createStatement<{ now: number }>(
  "has_due_events",
  "SELECT 1 FROM webhook_events WHERE next_try_at <= :now LIMIT 1",
);

/**
 * Goes from one application that has events waiting to the next by the index of events, as webhook-claims.ts does in
 * SQLite. Places are in order of writing.
 */
const SELECT_DUE = createStatement<{ now: number; limit: number }, { application_id: string; event_id: string }>(
  "select_due_events",
  `WITH RECURSIVE told(id) AS (
     SELECT min(application_id) FROM webhook_events
     UNION ALL
     SELECT (SELECT min(application_id) FROM webhook_events WHERE application_id > told.id) FROM told
     WHERE told.id IS NOT NULL)
   SELECT application_id, event_id FROM (
     SELECT endpoint.id AS application_id, endpoint.free_at AS free_at, (
       SELECT first.id FROM (
         SELECT place, id FROM webhook_events
         WHERE application_id = endpoint.id AND next_try_at <= :now ORDER BY next_try_at LIMIT ${LOOK_AT}
       ) AS first ORDER BY first.place LIMIT 1) AS event_id
     FROM told JOIN webhook_endpoints AS endpoint ON endpoint.id = told.id
       JOIN applications ON applications.id = told.id
     WHERE endpoint.free_at <= :now AND applications.state = 'ACTIVE'
   ) AS due WHERE event_id IS NOT NULL ORDER BY free_at LIMIT :limit`,
);

/** Whoever comes second waits for the first, and finds the endpoint no longer free. */
const TAKE_ENDPOINT = createStatement<{ id: string; until: number; now: number }, PostgresEndpointRow>(
  "take_endpoint",
  `UPDATE webhook_endpoints SET free_at = :until WHERE id = :id AND free_at <= :now
   RETURNING id, uri, secret, updated_at`,
);

interface EventRow {
  readonly id: string;
  readonly payload: string;
  readonly attempts: number;
  readonly created_at: number;
}

const TAKE_EVENT = createStatement<{ id: string; now: number }, EventRow>(
  "take_event",
  `UPDATE webhook_events SET attempts = attempts + 1 WHERE id = :id AND next_try_at <= :now
   RETURNING id, payload, attempts, created_at`,
);

/** Whoever was too slow has lost the claim: it must not end that of another. */
const LEAVE_ENDPOINT = createStatement<{ id: string; until: number; free_at: number }>(
  "leave_endpoint",
  "UPDATE webhook_endpoints SET free_at = :free_at WHERE id = :id AND free_at = :until",
);

const REMOVE_EVENT = createStatement<{ id: string }>("remove_event", "DELETE FROM webhook_events WHERE id = :id");

const DELAY_EVENT = createStatement<{ id: string; next_try_at: number }>(
  "delay_event",
  "UPDATE webhook_events SET next_try_at = :next_try_at WHERE id = :id",
);

/** Whether there may be something to claim. */
export async function hasDueEvents({ first }: Queries, now: number): Promise<boolean> {
  return (await first(HAS_DUE, { now })) !== undefined;
}

/** Claims endpoints, each with its oldest event that is due; the claim is on the endpoint. */
export async function claimEvents(queries: Queries, limit: number, until: number, now: number): Promise<DueEvent[]> {
  const claimed: DueEvent[] = [];
  for (const { application_id: id, event_id } of await queries.all(SELECT_DUE, { now, limit })) {
    const endpoint = await queries.first(TAKE_ENDPOINT, { id, until, now });
    if (endpoint === undefined) continue;
    const event = await queries.first(TAKE_EVENT, { id: event_id, now });
    // Another process had claimed, delivered and left it since it was found.
    if (event === undefined) await queries.run(LEAVE_ENDPOINT, { id, until, free_at: now });
    else claimed.push(dueEventFrom(event, endpointFromPostgres(endpoint), until));
  }
  return claimed;
}

/** The event was delivered, or is given up. */
export async function finishEvent({ run }: Queries, event: DueEvent, freeAt: number): Promise<void> {
  await run(REMOVE_EVENT, { id: event.id });
  await run(LEAVE_ENDPOINT, { id: event.endpoint.applicationId, until: event.claimedUntil, free_at: freeAt });
}

/** The event is due again later. */
export async function putOffEvent({ run }: Queries, event: DueEvent, nextTryAt: number, freeAt: number): Promise<void> {
  await run(DELAY_EVENT, { id: event.id, next_try_at: nextTryAt });
  await run(LEAVE_ENDPOINT, { id: event.endpoint.applicationId, until: event.claimedUntil, free_at: freeAt });
}

function dueEventFrom({ created_at, ...event }: EventRow, endpoint: WebhookEndpoint, until: number): DueEvent {
  const { type } = JSON.parse(event.payload) as { type: string };
  return { ...event, type, createdAt: created_at, endpoint, claimedUntil: until };
}
