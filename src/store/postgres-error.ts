import pg from "pg";
import { RelayError, UnconfirmedWriteError } from "../model/errors.js";
import { StoreOpenError } from "./database.js";

/**
 * An error of PostgreSQL or of the connection to it, without its text, which quotes keys and whole rows (threats L11).
 * `code` is a SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html), a system error code, `lost`
 * for a connection that ended without one, or `timeout`.
 */
export class PostgresError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`PostgreSQL failed with ${code}`);
    this.name = "PostgresError";
    this.code = code;
  }
}

/** The connection ended during COMMIT: nobody knows whether the transaction was committed. */
export class UnconfirmedCommit extends PostgresError {}

/** The connection ended, or could not be made. */
const LOST = "lost";
/** No answer came in time: the server may still be working on it, so the connection cannot be used again. */
const TIMEOUT = "timeout";

const AWAY = "The relay's database cannot be reached. Try again.";
const BUSY = "The relay's database is overloaded. Try again.";
const READ_ONLY = "The relay's database is read-only right now. Try again.";
const FULL = "The relay's database is out of resources, such as disk space. The operator must free some.";
const DENIED = "The relay's database refuses the relay. The operator must check its user, password and privileges.";
const DAMAGED = "The relay's database is damaged. The operator must restore it.";

/** The message for callers by SQLSTATE, or by its class; the longest match counts. */
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
 * Converts what pg rejects with: database errors by SQLSTATE, socket errors by the system's code, and everything else
 * to the loss of the connection, since pg has no code for that.
 */
export function postgresErrorFrom(error: unknown): PostgresError {
  if (error instanceof PostgresError) return error;
  const { code, message } =
    error instanceof Error ? (error as NodeJS.ErrnoException) : { code: undefined, message: "" };
  if (error instanceof pg.DatabaseError) return new PostgresError(code ?? LOST);
  // pg reports a timeout only by its message
  // (https://github.com/brianc/node-postgres/blob/master/packages/pg/lib/client.js).
  if (/timeout/i.test(message)) return new PostgresError(TIMEOUT);
  return new PostgresError(code ?? LOST);
}

/** Whether the connection can no longer be used; a statement that violated a constraint leaves it usable. */
export function isConnectionOver({ code }: PostgresError): boolean {
  return !isSqlState(code) || /^(08|57|58|XX|25|28)/.test(code);
}

/** Whether the connection had ended before it was used, so that nothing was done over it; false for a late answer. */
export function isConnectionLost({ code }: PostgresError): boolean {
  return code !== TIMEOUT && (!isSqlState(code) || /^(08|57P0)/.test(code));
}

/** Whether the transaction was rolled back because of a conflict with another one, so that a retry may work. */
export function isConflict({ code }: PostgresError): boolean {
  return code === "40001" || code === "40P01";
}

/**
 * Converts an error for the store's callers: STORE_UNAVAILABLE by code; a fault of ours stays one, without its text.
 */
export function storeErrorFrom(error: unknown): unknown {
  if (!(error instanceof PostgresError)) return error;
  if (error.code === "23503") {
    return new RelayError("INVALID_PUBLIC_KEY", "This application no longer exists.", { cause: error });
  }
  const message = messageOf(error.code);
  if (message === undefined) return error;
  return error instanceof UnconfirmedCommit
    ? new UnconfirmedWriteError(message, { cause: error })
    : new RelayError("STORE_UNAVAILABLE", message, { cause: error });
}

/** Converts an error of opening the store to one that names the database and the code. */
export function openErrorFrom(database: string, error: unknown): unknown {
  if (!(error instanceof PostgresError)) return error;
  return new StoreOpenError(database, openProblemOf(error.code), { cause: error });
}

function openProblemOf(code: string): string {
  if (code.startsWith("28")) return `refuses the user or the password (${code}); check RELAY_DATABASE`;
  if (code === "3D000") return "does not exist on this server; create it, or check RELAY_DATABASE";
  if (code === "42501")
    return `gives the user too few privileges (${code}); the user must own the relay's tables and be allowed to create more`;
  if (code === "3F000") return "has no such schema; create it, or check search_path in the options of RELAY_DATABASE";
  if (code === "42P07")
    return "has another program's tables with the same names as the relay's; give the relay its own database";
  if (code === "25006") return "is read-only: it is a standby or a read-only server; use the address of the primary";
  return `cannot be used (${code}); check RELAY_DATABASE, the server, and sslmode: without it, TLS is required except on this machine`;
}

function messageOf(code: string): string | undefined {
  if (code !== LOST && code !== TIMEOUT && !isSqlState(code)) return AWAY;
  return UNAVAILABLE.get(code) ?? UNAVAILABLE.get(code.slice(0, 2));
}

/** Five digits and capitals, with at least one digit, unlike the system's error codes. */
function isSqlState(code: string): boolean {
  return /^(?=.*\d)[0-9A-Z]{5}$/.test(code);
}
