import type Database from "better-sqlite3";
import type { Ticket, TicketKey, TicketKind, TicketStore } from "../oauth/tickets.js";
import type { Attempt } from "./attempt.js";

/** Removed each time one is added: more than come, so that none is left behind for long. */
const SWEEP = 20;

interface TicketRow {
  readonly id: string;
  readonly kind: TicketKind;
  readonly browser: string;
  readonly application_id: string;
  readonly user_id: string;
  readonly payload: Uint8Array;
  readonly expires_at: number;
}

/** Tickets in SQLite. */
export function createTicketStore(db: Database.Database, attempt: Attempt): TicketStore {
  const add = prepareAdd(db);
  const select = db.prepare<[string, TicketKind, string, number], TicketRow>(
    "SELECT * FROM tickets WHERE id = ? AND kind = ? AND browser = ? AND expires_at > ?",
  );
  const take = db.prepare<[string, TicketKind, string, number], TicketRow>(
    "DELETE FROM tickets WHERE id = ? AND kind = ? AND browser = ? AND expires_at > ? RETURNING *",
  );
  const one = (statement: typeof select, { id, kind, browser }: TicketKey, now: number) => {
    const row = statement.get(id, kind, browser, now);
    return row && ticketFromRow(row);
  };
  return {
    add: (ticket, most, now) => attempt.write(() => add(ticket, most, now)),
    find: (key, now) => attempt.read(() => one(select, key, now)),
    take: (key, now) => attempt.write(() => one(take, key, now)),
  };
}

function prepareAdd(db: Database.Database) {
  const sweep = db.prepare<[number, number]>(
    "DELETE FROM tickets WHERE id IN (SELECT id FROM tickets WHERE expires_at <= ? LIMIT ?)",
  );
  const count = db
    .prepare<[string, TicketKind, number], number>(
      "SELECT count(*) FROM tickets WHERE application_id = ? AND kind = ? AND expires_at > ?",
    )
    .pluck();
  const insert = db.prepare<[TicketRow]>(`
    INSERT INTO tickets (id, kind, browser, application_id, user_id, payload, expires_at)
    VALUES (:id, :kind, :browser, :application_id, :user_id, :payload, :expires_at)`);
  return (ticket: Ticket, most: number, now: number): boolean => {
    sweep.run(now, SWEEP);
    if ((count.get(ticket.applicationId, ticket.kind, now) ?? 0) >= most) return false;
    insert.run(rowFromTicket(ticket));
    return true;
  };
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
