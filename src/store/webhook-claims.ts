import type Database from "better-sqlite3";
import type { DueEvent, WebhookEndpoint } from "../webhooks/webhook-store.js";

/** A row of webhook_endpoints, as far as others need it. */
export interface EndpointRow {
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
export function endpointFromRow({ id, uri, secret, updated_at }: EndpointRow): WebhookEndpoint {
  return { applicationId: id, uri, secret, updatedAt: updated_at };
}

/** Prepares what delivering needs: the claim is on the endpoint, so that its events are delivered one after another. */
export function prepareClaims(db: Database.Database) {
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
