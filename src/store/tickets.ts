import type { Ticket, TicketKey, TicketKind, TicketStore } from "../oauth/tickets.js";
import { createStatement, type Database, first, type Operation, run } from "./database.js";

/** Most expired tickets removed per added one: more than are added, so that none stays for long. */
const SWEEP = 20;

const COLUMNS = "id, kind, browser, application_id, user_id, payload, expires_at";

const FIND = createStatement<TicketKey & { now: number }, Ticket>(
  `SELECT ${COLUMNS} FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND expires_at > :now`,
);

const TAKE = createStatement<TicketKey & { now: number }, Ticket>(`
   DELETE FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser AND expires_at > :now
   RETURNING ${COLUMNS}`);

const COUNT = createStatement<{ applicationId: string; kind: TicketKind; now: number }, { count: number }>(`
   SELECT count(*) AS count FROM tickets
   WHERE application_id = :application_id AND kind = :kind AND expires_at > :now`);

const ADD = createStatement<Ticket>(`INSERT INTO tickets (${COLUMNS})
   VALUES (:id, :kind, :browser, :application_id, :user_id, :payload, :expires_at)`);

/** SKIP LOCKED: processes wait neither for each other here, nor for an application that is being deleted. */
const REMOVE_ENDED = createStatement<{ now: number; limit: number }>(`DELETE FROM tickets WHERE id IN
     (SELECT id FROM tickets WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED)`);

/** Tickets live for minutes, so the clocks of the processes are accurate enough for their expiry. */
export function createTicketStore(database: Database): TicketStore {
  return {
    add: (ticket, most, now) => database.write(() => add(ticket, most, now)),
    find: (key, now) => database.read(() => first(FIND, { ...key, now })),
    take: (key, now) => database.write(() => first(TAKE, { ...key, now })),
  };
}

function* add(ticket: Ticket, most: number, now: number): Operation<boolean> {
  const counted = yield* first(COUNT, { ...ticket, now });
  if ((counted?.count ?? 0) >= most) return false;
  yield* run(ADD, ticket);
  yield* run(REMOVE_ENDED, { now, limit: SWEEP });
  return true;
}
