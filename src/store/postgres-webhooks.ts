import type { WebhookStore } from "../webhooks/webhook-store.js";
import { writeAudit } from "./postgres-audit-records.js";
import type { Session } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";
import {
  claimEvents,
  endpointFromPostgres,
  finishEvent,
  hasDueEvents,
  type PostgresEndpointRow,
  putOffEvent,
} from "./postgres-webhook-claims.js";

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
