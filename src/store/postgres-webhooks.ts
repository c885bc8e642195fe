import type { DueEvent, WebhookEndpoint, WebhookStore } from "../webhooks/webhook-store.js";
import type { Session } from "./postgres-session.js";
import { CLOCK, createStatement } from "./postgres-statement.js";

interface EndpointRow {
  readonly id: string;
  readonly uri: Buffer;
  readonly secret: Uint8Array;
  readonly updated_at: number;
}

const FIND = createStatement<{ id: string }, EndpointRow>(
  "find_endpoint",
  "SELECT id, uri, secret, updated_at FROM webhook_endpoints WHERE id = :id",
);

const PUT = createStatement<EndpointRow>(
  "put_endpoint",
  `INSERT INTO webhook_endpoints (id, uri, secret, updated_at) VALUES (:id, :uri, :secret, :updated_at)
   ON CONFLICT (id) DO UPDATE SET uri = excluded.uri, secret = excluded.secret, updated_at = excluded.updated_at`,
);

const DELETE_EVENTS = createStatement<{ id: string }>(
  "delete_events",
  "DELETE FROM webhook_events WHERE application_id = :id",
);

const DELETE = createStatement<{ id: string }>("delete_endpoint", "DELETE FROM webhook_endpoints WHERE id = :id");

interface EventRow {
  readonly id: string;
  readonly application_id: string;
  readonly payload: string;
  readonly attempts: number;
  readonly created_at: number;
}

/**
 * Two processes that want the same rows: the second one waits for the first, and finds them no longer due. Due and held
 * are by the database's clock.
 */
const CLAIM = createStatement<{ limit: number; hold_ms: number }, EventRow>(
  "claim_events",
  `UPDATE webhook_events SET attempts = attempts + 1, next_try_at = ${CLOCK} + :hold_ms::bigint
   WHERE next_try_at <= ${CLOCK} AND id IN
     (SELECT id FROM webhook_events WHERE next_try_at <= ${CLOCK} ORDER BY next_try_at, id LIMIT :limit)
   RETURNING id, application_id, payload, attempts, created_at`,
);

const REMOVE = createStatement<{ id: string }>("remove_event", "DELETE FROM webhook_events WHERE id = :id");

const RETRY = createStatement<{ id: string; wait_ms: number }>(
  "retry_event",
  `UPDATE webhook_events SET next_try_at = ${CLOCK} + :wait_ms::bigint WHERE id = :id`,
);

const BACKLOG = createStatement<{ id: string }, { waiting: number; oldest: number | null }>(
  "event_backlog",
  "SELECT count(*) AS waiting, min(created_at) AS oldest FROM webhook_events WHERE application_id = :id",
);

/** Webhook endpoints and undelivered events in PostgreSQL. @param now the clock of this process. */
export function createPostgresWebhookStore(session: Session, now: () => number): WebhookStore {
  return {
    async findEndpoint(applicationId) {
      const row = await session.read(({ first }) => first(FIND, { id: applicationId }));
      return row && endpointFromRow(row);
    },
    putEndpoint: ({ applicationId: id, uri, secret, updatedAt }) =>
      session.write(async ({ run }) => {
        await run(PUT, { id, uri: Buffer.from(uri), secret, updated_at: updatedAt });
      }),
    deleteEndpoint: (id) =>
      session.write(async ({ run }) => {
        await run(DELETE_EVENTS, { id });
        return (await run(DELETE, { id })) > 0;
      }),
    async claimDue(limit, until, at) {
      const rows = await session.write(({ all }) => all(CLAIM, { limit, hold_ms: until - at }));
      return rows.map(eventFromRow).sort((one, other) => one.createdAt - other.createdAt);
    },
    remove: (id) => session.write(async ({ run }) => void (await run(REMOVE, { id }))),
    retryAt: (id, nextTryAt) =>
      session.write(async ({ run }) => void (await run(RETRY, { id, wait_ms: nextTryAt - now() }))),
    async backlog(applicationId) {
      const row = await session.read(({ first }) => first(BACKLOG, { id: applicationId }));
      return { waiting: row?.waiting ?? 0, oldestAt: row?.oldest ?? undefined };
    },
  };
}

function endpointFromRow({ id, uri, secret, updated_at }: EndpointRow): WebhookEndpoint {
  return { applicationId: id, uri: uri.toString(), secret, updatedAt: updated_at };
}

function eventFromRow({ id, application_id, payload, attempts, created_at }: EventRow): DueEvent {
  return { id, applicationId: application_id, payload, attempts, createdAt: created_at };
}
