import type { Ticket, TicketKey, TicketKind, TicketStore } from "../oauth/tickets.js";
import { createStatement, type Database, first, type Operation, run } from "./database.js";

/** Most expired tickets removed per added one: more than are added, so that none stays for long. */
const SWEEP = 20;

const COLUMNS = "id, kind, browser, application_id, user_id, payload, expires_at";

interface TicketRow {
  readonly id: string;
  readonly kind: TicketKind;
  readonly browser: string;
  readonly application_id: string;
  readonly user_id: string;
  readonly payload: Uint8Array;
  readonly expires_at: number;
}

const FIND = createStatement<TicketKey & { now: number }, TicketRow>(
  `SELECT ${COLUMNS} FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND expires_at > :now`,
);

const TAKE = createStatement<TicketKey & { now: number }, TicketRow>(`
   DELETE FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND expires_at > :now
   RETURNING ${COLUMNS}`);

const COUNT = createStatement<{ application_id: string; kind: TicketKind; now: number }, { count: number }>(`
   SELECT count(*) AS count FROM tickets
   WHERE application_id = :application_id AND kind = :kind AND expires_at > :now`);

const ADD = createStatement<TicketRow>(`INSERT INTO tickets (${COLUMNS})
   VALUES (:id, :kind, :browser, :application_id, :user_id, :payload, :expires_at)`);

/** SKIP LOCKED: processes wait neither for each other here, nor for an application that is being deleted. */
const REMOVE_ENDED = createStatement<{ now: number; limit: number }>(`DELETE FROM tickets WHERE id IN
     (SELECT id FROM tickets WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED)`);

/** Tickets live for minutes, so the clocks of the processes are accurate enough for their expiry. */
export function createTicketStore(database: Database): TicketStore {
  return {
    add: (ticket, most, now) => database.write(() => add(ticket, most, now)),
    async find({ id, kind, browser }, now) {
      const row = await database.read(() => first(FIND, { id, kind, browser, now }));
      return row && ticketFromRow(row);
    },
    async take({ id, kind, browser }, now) {
      const row = await database.write(() => first(TAKE, { id, kind, browser, now }));
      return row && ticketFromRow(row);
    },
  };
}

function* add(ticket: Ticket, most: number, now: number): Operation<boolean> {
  const counted = yield* first(COUNT, { application_id: ticket.applicationId, kind: ticket.kind, now });
  if ((counted?.count ?? 0) >= most) return false;
  yield* run(ADD, rowFromTicket(ticket));
  yield* run(REMOVE_ENDED, { now, limit: SWEEP });
  return true;
}

function ticketFromRow(row: TicketRow): Ticket {
  return {
    id: row.id,
    kind: row.kind,
    browser: row.browser,
    applicationId: row.application_id,
    userId: row.user_id,
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
    user_id: ticket.userId,
    payload: ticket.payload,
    expires_at: ticket.expiresAt,
  };
}
