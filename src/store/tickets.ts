import type { Ticket, TicketKey, TicketKind, TicketStore } from "../oauth/tickets.js";
import { createStatement, type Database, first, type Operation, run } from "./database.js";

/** Most expired tickets removed per added one: more than are added, so that none stays for long. */
const SWEEP = 20;

const COLUMNS = "id, kind, browser, application_id, user_id, payload, expires_at";

/**
 * How far ahead a ticket may expire, in milliseconds: the longest lifetime, half an hour, and some minutes for clocks
 * that differ. One that expires later was issued while a clock was ahead, and counts as expired.
 */
const LONGEST_MS = 35 * 60_000;

/** When valid tickets expire: after `now`, and not after `latest`. */
const validAt = (now: number) => ({ now, latest: now + LONGEST_MS });
type Validity = ReturnType<typeof validAt>;

const FIND = createStatement<TicketKey & Validity, Ticket>(`
   SELECT ${COLUMNS} FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser
     AND expires_at > :now AND expires_at <= :latest`);

const TAKE = createStatement<TicketKey & Validity, Ticket>(`
   DELETE FROM tickets WHERE id = :id AND kind = :kind AND browser = :browser
     AND expires_at > :now AND expires_at <= :latest
   RETURNING ${COLUMNS}`);

const COUNT = createStatement<{ applicationId: string; kind: TicketKind } & Validity, { count: number }>(`
   SELECT count(*) AS count FROM tickets
   WHERE application_id = :application_id AND kind = :kind AND expires_at > :now AND expires_at <= :latest`);

/** Those that expire in the same millisecond as the oldest go with it. */
const REMOVE_OLDEST = createStatement<{ applicationId: string; kind: TicketKind; now: number }>(`
   DELETE FROM tickets WHERE application_id = :application_id AND kind = :kind AND expires_at = (
     SELECT min(expires_at) FROM tickets
     WHERE application_id = :application_id AND kind = :kind AND expires_at > :now)`);

const ADD = createStatement<Ticket>(`INSERT INTO tickets (${COLUMNS})
   VALUES (:id, :kind, :browser, :application_id, :user_id, :payload, :expires_at)`);

/** SKIP LOCKED: processes wait neither for each other here, nor for an application that is being deleted. */
const removeThose = (which: string) =>
  createStatement<Validity>(`DELETE FROM tickets WHERE id IN
     (SELECT id FROM tickets WHERE ${which} ORDER BY expires_at LIMIT ${SWEEP} FOR UPDATE SKIP LOCKED)`);

const REMOVE_ENDED = removeThose("expires_at <= :now");
const REMOVE_AHEAD = removeThose("expires_at > :latest");

/** Tickets live for minutes, so the clocks of the processes are accurate enough for their expiry. */
export function createTicketStore(database: Database): TicketStore {
  return {
    add: (ticket, most, now, link) => database.write(() => add(ticket, most, now, link)),
    find: (key, now) => database.read(() => first(FIND, { ...key, ...validAt(now) })),
    take: (key, now) => database.write(() => first(TAKE, { ...key, ...validAt(now) })),
  };
}

/** A change of the application locks it before its tickets; the foreign key of a new one would lock it after the link. */
const HOLD = createStatement<{ applicationId: string }, unknown>(
  "SELECT id FROM applications WHERE id = :application_id FOR KEY SHARE",
);

function* add(ticket: Ticket, most: number, now: number, link: TicketKey | undefined): Operation<boolean> {
  const validity = validAt(now);
  if (link !== undefined) {
    yield* first(HOLD, ticket);
    if ((yield* first(TAKE, { ...link, ...validity })) === undefined) return false;
  }
  const counted = yield* first(COUNT, { ...ticket, ...validity });
  if ((counted?.count ?? 0) >= most) {
    if (ticket.kind === "LINK") return false;
    yield* run(REMOVE_OLDEST, { ...ticket, now });
  }
  yield* run(ADD, ticket);
  yield* run(REMOVE_ENDED, validity);
  yield* run(REMOVE_AHEAD, validity);
  return true;
}
