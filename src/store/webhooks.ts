import { randomUUID } from "node:crypto";
import type { AuditEntry } from "../model/audit.js";
import type { ConnectionKey } from "../oauth/connection.js";
import {
  type DeliveryOutcome,
  type DueEvent,
  payloadFromEvent,
  type WebhookEndpoint,
  type WebhookEventType,
  type WebhookStore,
} from "../webhooks/webhook-store.js";
import { writeAudit } from "./audit-records.js";
import { all, createRemoval, createStatement, type Database, first, type Operation, run } from "./database.js";
import { createDeliveries, noteDelivery } from "./webhook-deliveries.js";

/** The columns of an endpoint, without `free_at`. */
const ENDPOINT = "id AS application_id, uri, secret, updated_at";

const FIND = createStatement<{ id: string }, WebhookEndpoint>(
  `SELECT ${ENDPOINT} FROM webhook_endpoints WHERE id = :id`,
);

const PUT = createStatement<WebhookEndpoint>(`
   INSERT INTO webhook_endpoints (id, uri, secret, updated_at) VALUES (:application_id, :uri, :secret, :updated_at)
   ON CONFLICT (id) DO UPDATE SET uri = excluded.uri, secret = excluded.secret, updated_at = excluded.updated_at`);

/** Never those of a webhook that is there, also of one that was set meanwhile. */
const removeEvents = createRemoval(
  "webhook_events",
  "next_try_at",
  "AND NOT EXISTS (SELECT 1 FROM webhook_endpoints AS endpoint WHERE endpoint.id = :id)",
);

const DELETE = createStatement<{ id: string }>("DELETE FROM webhook_endpoints WHERE id = :id");

/** Counts in the index alone, since many may wait. */
const BACKLOG = createStatement<{ id: string }, { waiting: number; oldest: number | undefined }>(`
   SELECT waiting, (SELECT created_at FROM webhook_events WHERE application_id = :id AND place = first_place) AS oldest
   FROM (SELECT count(*) AS waiting, min(place) AS first_place FROM webhook_events WHERE application_id = :id) AS counted`);

/**
 * Webhook endpoints and undelivered events. Times are by the clocks of the processes: if those differ, an event may be
 * delivered late or twice, which its receiver must expect in any case.
 */
export function createWebhookStore(database: Database): WebhookStore {
  return {
    findEndpoint: (id) => database.read(() => first(FIND, { id })),
    async putEndpoint(endpoint, audit) {
      // What a deletion that was cut off has left.
      await removeEvents(database, endpoint.applicationId);
      await database.write(() => put(endpoint, audit));
    },
    async deleteEndpoint(id, audit) {
      const isDeleted = await database.write(() => deleteEndpoint(id, audit));
      await removeEvents(database, id);
      return isDeleted;
    },
    // Every process calls this every second, so a transaction is begun only when an event is due.
    async claimDue(limit, until, now) {
      const due = await database.read(() => findDue(limit, now));
      return due.length > 0 ? database.write(() => claim(due, until, now)) : [];
    },
    finish: (event, freeAt, outcome) => database.write(() => settle(event, freeAt, outcome)),
    putOff: (event, nextTryAt, freeAt, outcome) => database.write(() => settle(event, freeAt, outcome, nextTryAt)),
    addTest: (applicationId, now, audit) => database.write(() => addTest(applicationId, now, audit)),
    ...createDeliveries(database),
    async backlog(id) {
      const row = await database.read(() => first(BACKLOG, { id }));
      return { waiting: row?.waiting ?? 0, oldestAt: row?.oldest };
    },
  };
}

function* put(endpoint: WebhookEndpoint, audit: AuditEntry | undefined): Operation<void> {
  yield* run(PUT, endpoint);
  yield* writeAudit(audit);
}

/** Waits for those who are adding an event; nobody adds one afterwards. */
function* deleteEndpoint(id: string, audit: AuditEntry | undefined): Operation<boolean> {
  const isDeleted = (yield* run(DELETE, { id })) > 0;
  if (isDeleted) yield* writeAudit(audit);
  return isDeleted;
}

/** The oldest event is searched among this many that were due first: more would make each claim more expensive. */
const LOOK_AT = 100;

/**
 * Longest rest of an endpoint and longest wait of an event, in milliseconds; the deliverer sets shorter ones. One that
 * ends later was set while a clock was ahead, and counts as over.
 */
const LONGEST_REST_MS = 6 * 60_000;
const LONGEST_WAIT_MS = 27 * 60 * 60_000;

/** A time, and how far ahead of it a rest and a wait may end. */
const boundsFrom = (now: number) => ({ now, rest: now + LONGEST_REST_MS, wait: now + LONGEST_WAIT_MS });

/** Usually nothing is due: then these two index look-ups are all. */
const HAS_DUE = createStatement<{ now: number; wait: number }, unknown>(`
   SELECT 1 WHERE EXISTS (SELECT 1 FROM webhook_events WHERE next_try_at <= :now)
     OR EXISTS (SELECT 1 FROM webhook_events WHERE next_try_at > :wait)`);

interface DueRow {
  readonly applicationId: string;
  readonly eventId: string;
}

/**
 * Lists the applications with waiting events by skipping from one to the next in the index of events, so that the cost
 * depends on neither the number of endpoints nor that of events.
 */
export const WITH_TOLD = `WITH RECURSIVE told(id) AS (
     SELECT min(application_id) FROM webhook_events
     UNION ALL
     SELECT (SELECT min(application_id) FROM webhook_events WHERE application_id > told.id) FROM told
     WHERE told.id IS NOT NULL)`;

/** A range of its own for each bound: with OR, all waiting events of the endpoint would be read. */
const dueOf = (bound: string) => `SELECT place, id FROM (
         SELECT place, id FROM webhook_events
         WHERE application_id = endpoint.id AND next_try_at ${bound} ORDER BY next_try_at LIMIT ${LOOK_AT}
       ) AS due`;

/** Finds each free endpoint with its oldest due event. Places are in order of writing. */
const SELECT_DUE = createStatement<ReturnType<typeof boundsFrom> & { limit: number }, DueRow>(`${WITH_TOLD}
   SELECT application_id, event_id FROM (
     SELECT endpoint.id AS application_id, endpoint.free_at AS free_at, (
       SELECT oldest.id FROM (
         ${dueOf("<= :now")} UNION ALL ${dueOf("> :wait")}
       ) AS oldest ORDER BY oldest.place LIMIT 1) AS event_id
     FROM told JOIN webhook_endpoints AS endpoint ON endpoint.id = told.id
       JOIN applications ON applications.id = told.id
     WHERE (endpoint.free_at <= :now OR endpoint.free_at > :rest) AND applications.state = 'ACTIVE'
   ) AS due WHERE event_id IS NOT NULL ORDER BY free_at LIMIT :limit`);

/** Claims an endpoint. A second process finds it no longer free. */
const TAKE_ENDPOINT = createStatement<{ id: string; until: number; now: number; rest: number }, WebhookEndpoint>(`
   UPDATE webhook_endpoints SET free_at = :until WHERE id = :id AND (free_at <= :now OR free_at > :rest)
   RETURNING ${ENDPOINT}`);

type EventRow = Pick<DueEvent, "id" | "payload" | "attempts" | "createdAt">;

const TAKE_EVENT = createStatement<{ id: string; now: number; wait: number }, EventRow>(`
   UPDATE webhook_events SET attempts = attempts + 1 WHERE id = :id AND (next_try_at <= :now OR next_try_at > :wait)
   RETURNING id, payload, attempts, created_at`);

/** Releases a claim. A process that was too slow has lost its claim, and must not end that of another. */
const LEAVE_ENDPOINT = createStatement<{ id: string; until: number; freeAt: number }>(
  "UPDATE webhook_endpoints SET free_at = :free_at WHERE id = :id AND free_at = :until",
);

const REMOVE_EVENT = createStatement<{ id: string }>("DELETE FROM webhook_events WHERE id = :id");

const DELAY_EVENT = createStatement<{ id: string; nextTryAt: number }>(
  "UPDATE webhook_events SET next_try_at = :next_try_at WHERE id = :id",
);

/** Endpoints that may be claimed, each with its oldest event that is due. */
function* findDue(limit: number, now: number): Operation<DueRow[]> {
  const bounds = boundsFrom(now);
  return (yield* first(HAS_DUE, bounds)) === undefined ? [] : yield* all(SELECT_DUE, { ...bounds, limit });
}

/** The claim is on the endpoint, so that its events are delivered one after another. */
function* claim(due: readonly DueRow[], until: number, now: number): Operation<DueEvent[]> {
  const claimed: DueEvent[] = [];
  const bounds = boundsFrom(now);
  for (const { applicationId: id, eventId } of due) {
    const endpoint = yield* first(TAKE_ENDPOINT, { ...bounds, id, until });
    if (endpoint === undefined) continue;
    const event = yield* first(TAKE_EVENT, { ...bounds, id: eventId });
    // Another process has claimed, delivered and released it since it was found.
    if (event === undefined) yield* run(LEAVE_ENDPOINT, { id, until, freeAt: now });
    else claimed.push({ ...event, type: JSON.parse(event.payload).type, endpoint, claimedUntil: until });
  }
  return claimed;
}

/**
 * Releases the endpoint, and removes an event that was delivered or given up, or delays it until `nextTryAt`. A process
 * that has lost its claim changes nothing, unless it has delivered the event: whoever has the claim decides.
 */
function* settle(event: DueEvent, freeAt: number, outcome: DeliveryOutcome, nextTryAt?: number): Operation<void> {
  const { id, endpoint, claimedUntil: until } = event;
  const isDelivered = outcome.kind === "delivered";
  const isOwner = (yield* run(LEAVE_ENDPOINT, { id: endpoint.applicationId, until, freeAt })) > 0;
  if (!isOwner && !isDelivered) return;
  const changed = yield* nextTryAt === undefined ? run(REMOVE_EVENT, { id }) : run(DELAY_EVENT, { id, nextTryAt });
  // None: an earlier owner was late, and has delivered it.
  if (changed > 0 || isDelivered) yield* noteDelivery(event, outcome);
}

/** Locks the rows, so that neither is deleted before the event is committed. */
const FIND_RECEIVER = createStatement<{ id: string }, { publicKey: string }>(
  "SELECT public_key FROM applications JOIN webhook_endpoints USING (id) WHERE id = :id FOR KEY SHARE",
);

const ENQUEUE = createStatement<{ id: string; applicationId: string; payload: string; now: number }>(`
   INSERT INTO webhook_events (id, application_id, payload, next_try_at, created_at)
   VALUES (:id, :application_id, :payload, :now, :now)`);

/**
 * Writes an event in the transaction of the change that it reports, and returns its id; returns undefined, and writes
 * nothing, for an application without an endpoint.
 */
export function* enqueueEvent(
  type: WebhookEventType,
  { applicationId, userId, providerName }: Pick<ConnectionKey, "applicationId"> & Partial<ConnectionKey>,
  now: number,
  reason?: string | undefined,
): Operation<string | undefined> {
  const receiver = yield* first(FIND_RECEIVER, { id: applicationId });
  if (receiver === undefined) return undefined;
  const payload = payloadFromEvent(type, { publicKey: receiver.publicKey, userId, providerName, reason }, now);
  const id = `msg_${randomUUID()}`;
  yield* run(ENQUEUE, { id, applicationId, payload, now });
  return id;
}

function* addTest(applicationId: string, now: number, audit: AuditEntry): Operation<string | undefined> {
  const id = yield* enqueueEvent("webhook.test", { applicationId }, now);
  if (id !== undefined) yield* writeAudit(audit);
  return id;
}
