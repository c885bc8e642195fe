import { randomUUID } from "node:crypto";
import type { ConnectionKey } from "../oauth/connection.js";
import {
  type DueEvent,
  payloadFromEvent,
  type WebhookEndpoint,
  type WebhookEventType,
  type WebhookStore,
} from "../webhooks/webhook-store.js";
import { writeAudit } from "./postgres-audit-records.js";
import { createStatement, type Queries, type Session } from "./postgres-session.js";

const FIND = createStatement<{ id: string }, PostgresEndpointRow>(
  "find_endpoint",
  "SELECT id, uri, secret, updated_at FROM webhook_endpoints WHERE id = :id",
);

const PUT = createStatement<PostgresEndpointRow>(
  "put_endpoint",
  `INSERT INTO webhook_endpoints (id, uri, secret, updated_at) VALUES (:id, :uri, :secret, :updated_at)
   ON CONFLICT (id) DO UPDATE SET uri = excluded.uri, secret = excluded.secret, updated_at = excluded.updated_at`,
);

const DELETE_EVENTS = createStatement<{ id: string }>(
  "delete_events",
  "DELETE FROM webhook_events WHERE application_id = :id",
);

const DELETE = createStatement<{ id: string }>("delete_endpoint", "DELETE FROM webhook_endpoints WHERE id = :id");

const BACKLOG = createStatement<{ id: string }, { waiting: number; oldest: number | null }>(
  "event_backlog",
  "SELECT count(*) AS waiting, min(created_at) AS oldest FROM webhook_events WHERE application_id = :id",
);

/**
 * Webhook endpoints and undelivered events in PostgreSQL. Times are by the clocks of the processes: where those differ,
 * an event may come later or once more, which its receiver must expect in any case.
 */
export function createPostgresWebhookStore(session: Session): WebhookStore {
  return {
    async findEndpoint(applicationId) {
      const row = await session.read(({ first }) => first(FIND, { id: applicationId }));
      return row && endpointFromPostgres(row);
    },
    putEndpoint: ({ applicationId: id, uri, secret, updatedAt }, audit) =>
      session.write(async (queries) => {
        await queries.run(PUT, { id, uri: Buffer.from(uri), secret, updated_at: updatedAt });
        await writeAudit(queries, audit);
      }),
    deleteEndpoint: (id, audit) =>
      session.write(async (queries) => {
        await queries.run(DELETE_EVENTS, { id });
        const isDeleted = (await queries.run(DELETE, { id })) > 0;
        if (isDeleted) await writeAudit(queries, audit);
        return isDeleted;
      }),
    claimDue: async (limit, until, now) =>
      (await session.read((queries) => hasDueEvents(queries, now)))
        ? session.write((queries) => claimEvents(queries, limit, until, now))
        : [],
    finish: (event, freeAt) => session.write((queries) => finishEvent(queries, event, freeAt)),
    putOff: (event, nextTryAt, freeAt) => session.write((queries) => putOffEvent(queries, event, nextTryAt, freeAt)),
    async backlog(applicationId) {
      const row = await session.read(({ first }) => first(BACKLOG, { id: applicationId }));
      return { waiting: row?.waiting ?? 0, oldestAt: row?.oldest ?? undefined };
    },
  };
}

/** A row of webhook_endpoints; the URI is text of others, and so bytes. */
interface PostgresEndpointRow {
  readonly id: string;
  readonly uri: Buffer;
  readonly secret: Uint8Array;
  readonly updated_at: number;
}

/** The endpoint that a row tells of. */
function endpointFromPostgres({ id, uri, secret, updated_at }: PostgresEndpointRow): WebhookEndpoint {
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
async function hasDueEvents({ first }: Queries, now: number): Promise<boolean> {
  return (await first(HAS_DUE, { now })) !== undefined;
}

/** Claims endpoints, each with its oldest event that is due; the claim is on the endpoint. */
async function claimEvents(queries: Queries, limit: number, until: number, now: number): Promise<DueEvent[]> {
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
async function finishEvent({ run }: Queries, event: DueEvent, freeAt: number): Promise<void> {
  await run(REMOVE_EVENT, { id: event.id });
  await run(LEAVE_ENDPOINT, { id: event.endpoint.applicationId, until: event.claimedUntil, free_at: freeAt });
}

/** The event is due again later. */
async function putOffEvent({ run }: Queries, event: DueEvent, nextTryAt: number, freeAt: number): Promise<void> {
  await run(DELAY_EVENT, { id: event.id, next_try_at: nextTryAt });
  await run(LEAVE_ENDPOINT, { id: event.endpoint.applicationId, until: event.claimedUntil, free_at: freeAt });
}

function dueEventFrom({ created_at, ...event }: EventRow, endpoint: WebhookEndpoint, until: number): DueEvent {
  const { type } = JSON.parse(event.payload) as { type: string };
  return { ...event, type, createdAt: created_at, endpoint, claimedUntil: until };
}

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
