import type { Ticket, TicketKey, TicketKind, TicketStore } from "../oauth/tickets.js";
import { createStatement, type Queries, type Session } from "./postgres-session.js";

/** Removed each time one is added: more than come, so that none is left behind for long. */
const SWEEP = 20;

const COLUMNS = "id, kind, browser, application_id, user_id, payload, expires_at";

interface TicketRow {
  readonly id: string;
  readonly kind: TicketKind;
  readonly browser: string;
  readonly application_id: string;
  readonly user_id: Buffer;
  readonly payload: Uint8Array;
  readonly expires_at: number;
}

const OF_KEY = "id = :id AND kind = :kind AND browser = :browser AND expires_at > :now";

const FIND = createStatement<TicketKey & { now: number }, TicketRow>(
  "find_ticket",
  `SELECT ${COLUMNS} FROM tickets WHERE ${OF_KEY}`,
);

const TAKE = createStatement<TicketKey & { now: number }, TicketRow>(
  "take_ticket",
  `DELETE FROM tickets WHERE ${OF_KEY} RETURNING ${COLUMNS}`,
);

/** In order of the id: two processes that remove the same ones wait for each other instead of crossing. */
const REMOVE_ENDED = createStatement<{ now: number; limit: number }>(
  "remove_ended_tickets",
  `DELETE FROM tickets WHERE id IN
     (SELECT id FROM tickets WHERE expires_at <= :now ORDER BY expires_at, id LIMIT :limit)`,
);

const COUNT = createStatement<{ application_id: string; kind: TicketKind; now: number }, { count: number }>(
  "count_tickets",
  `SELECT count(*) AS count FROM tickets
   WHERE application_id = :application_id AND kind = :kind AND expires_at > :now`,
);

const ADD = createStatement<TicketRow>(
  "add_ticket",
  `INSERT INTO tickets (${COLUMNS})
   VALUES (:id, :kind, :browser, :application_id, :user_id, :payload, :expires_at)`,
);

/** Tickets in PostgreSQL. Their ends are minutes away, so the clocks of the processes are good enough. */
export function createPostgresTicketStore(session: Session): TicketStore {
  return {
    async add(ticket, most, now) {
      await session.write(({ run }) => run(REMOVE_ENDED, { now, limit: SWEEP }));
      return session.write((queries) => add(queries, ticket, most, now));
    },
    async find({ id, kind, browser }, now) {
      const row = await session.read(({ first }) => first(FIND, { id, kind, browser, now }));
      return row && ticketFromRow(row);
    },
    async take({ id, kind, browser }, now) {
      const row = await session.write(({ first }) => first(TAKE, { id, kind, browser, now }));
      return row && ticketFromRow(row);
    },
  };
}

async function add({ first, run }: Queries, ticket: Ticket, most: number, now: number): Promise<boolean> {
  const { applicationId, kind } = ticket;
  const counted = await first(COUNT, { application_id: applicationId, kind, now });
  if ((counted?.count ?? 0) >= most) return false;
  await run(ADD, rowFromTicket(ticket));
  return true;
}

function ticketFromRow(row: TicketRow): Ticket {
  return {
    id: row.id,
    kind: row.kind,
    browser: row.browser,
    applicationId: row.application_id,
    userId: row.user_id.toString(),
    payload: row.payload,
    expiresAt: row.expires_at,
  };
}

function rowFromTicket(ticket: Ticket): TicketRow {
  return {
    id: ticket.id,
    kind: ticket.kind,
    browser: ticket.browser,
    application_id: ticket.applicationId,
    user_id: Buffer.from(ticket.userId),
    payload: ticket.payload,
    expires_at: ticket.expiresAt,
  };
}
