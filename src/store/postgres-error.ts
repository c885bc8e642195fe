import pg from "pg";
import { RelayError, UnconfirmedWriteError } from "../model/errors.js";
import { StoreOpenError } from "./database.js";

/**
 * What PostgreSQL or the way to it answered, without its text: that quotes keys and whole rows (threats L11). `code` is
 * a SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html), a code of the system, or `lost` for a
 * connection that ended without one.
 */
export class PostgresError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`PostgreSQL failed with ${code}`);
    this.name = "PostgresError";
    this.code = code;
  }
}

/** The connection ended during COMMIT: nobody knows whether the transaction was kept. */
export class UnconfirmedCommit extends PostgresError {}

/** A connection that ended, or never came to be. */
const LOST = "lost";
/** An answer that did not come in time: the connection may still work on it, and is of no more use. */
const TIMEOUT = "timeout";

const AWAY = "The relay's database cannot be reached. Try again.";
const BUSY = "The relay's database is overloaded. Try again.";
const READ_ONLY = "The relay's database cannot be written now. Try again.";
const FULL = "The relay's database is out of resources. The operator must make room.";
const DENIED = "The relay's database refuses the relay. The operator must check its user, password and rights.";
const DAMAGED = "The relay's database is damaged. The operator must restore it.";

/** SQLSTATE, or its class, and what it means to a caller; the longest one that fits counts. */
const UNAVAILABLE: ReadonlyMap<string, string> = new Map([
  [LOST, AWAY],
  [TIMEOUT, BUSY],
  ["08", AWAY],
  ["57", AWAY],
  ["57014", BUSY],
  ["40", BUSY],
  ["53", FULL],
  ["53300", BUSY],
  ["55", BUSY],
  ["25006", READ_ONLY],
  ["25", BUSY],
  ["28", DENIED],
  ["3D", DENIED],
  ["3F", DENIED],
  ["42501", DENIED],
  ["58", DAMAGED],
  ["XX", DAMAGED],
]);

/**
 * What pg rejects with, as ours: the database's own errors by SQLSTATE, those of sockets by the system's code, and
 * everything else as the loss of the connection, since pg has no code for that.
 */
export function postgresErrorFrom(error: unknown): PostgresError {
  if (error instanceof PostgresError) return error;
  const { code, message } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { code: undefined, message: "" };
  if (error instanceof pg.DatabaseError) return new PostgresError(code ?? LOST);
  // pg says it in words only (https://github.com/brianc/node-postgres/blob/master/packages/pg/lib/client.js).
  if (/timeout/i.test(message)) return new PostgresError(TIMEOUT);
  return new PostgresError(code ?? LOST);
}

/** Whether the connection is of no more use; a statement that broke a rule leaves it as it was. */
export function isConnectionOver({ code }: PostgresError): boolean {
  return !isSqlState(code) || /^(08|57|58|XX|25|28)/.test(code);
}

/** Whether the connection had ended before it was used, so that nothing was done over it; not when an answer is late. */
export function isConnectionLost({ code }: PostgresError): boolean {
  return code !== TIMEOUT && (!isSqlState(code) || /^(08|57P0)/.test(code));
}

/** Whether the transaction was undone for the sake of another one, so that it may work when it is run again. */
export function isConflict({ code }: PostgresError): boolean {
  return code === "40001" || code === "40P01";
}

/** What the store rejects with: STORE_UNAVAILABLE by code; a fault of ours stays one, without PostgreSQL's text. */
export function storeErrorFrom(error: unknown): unknown {
  if (!(error instanceof PostgresError)) return error;
  if (error.code === "23503") {
    return new RelayError("INVALID_PUBLIC_KEY", "This application does not exist any more.", { cause: error });
  }
  const message = messageOf(error.code);
  if (message === undefined) return error;
  return error instanceof UnconfirmedCommit
    ? new UnconfirmedWriteError(message, { cause: error })
    : new RelayError("STORE_UNAVAILABLE", message, { cause: error });
}

/** What opening the store throws: an error that names the database and the code. */
export function openErrorFrom(database: string, error: unknown): unknown {
  if (!(error instanceof PostgresError)) return error;
  return new StoreOpenError(database, openProblemOf(error.code), { cause: error });
}

function openProblemOf(code: string): string {
  if (code.startsWith("28")) return `refuses the user or the password (${code}); check RELAY_DATABASE`;
  if (code === "3D000") return "does not exist at this server; create it, or check RELAY_DATABASE";
  if (code === "42501") return `lacks rights for the user (${code}); it must own its tables`;
  if (code === "42P07")
    return "has tables of another program under names of the relay's; give the relay a database of its own";
  if (code === "25006") return "cannot be written: a standby, or a read-only server; give the address of the primary";
  return `cannot be used (${code}); check RELAY_DATABASE, the server, and sslmode: without it, TLS is required except on this machine`;
}

function messageOf(code: string): string | undefined {
  if (code !== LOST && code !== TIMEOUT && !isSqlState(code)) return AWAY;
  return UNAVAILABLE.get(code) ?? UNAVAILABLE.get(code.slice(0, 2));
}

/** Five characters, digits and capitals, and unlike the system's codes at least one digit. */
function isSqlState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
}
