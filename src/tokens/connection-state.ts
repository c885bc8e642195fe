import type { Connection, ConnectionState } from "./connection.js";
import { decideFreshness } from "./freshness.js";

/** What people and programs are told of a connection. */
export interface ToldState {
  readonly state: ConnectionState;
  /** Why the user must connect again; undefined while the state is ACTIVE. */
  readonly reason: string | undefined;
}

/**
 * The state that tells the truth at `now` (milliseconds since the epoch): a token that has ended and cannot be renewed
 * is of no more use, though nothing has happened to the row. It is not written there at once, since a clock that is wrong
 * for a moment would end connections for good (threats 3.7); expiry-sweep.ts does it when that cannot be.
 */
export function toldStateOf(
  connection: Pick<Connection, "id" | "state" | "stateReason" | "obtainedAt" | "expiresAt"> & {
    /** Only whether there is one counts. */
    readonly refreshToken: unknown;
  },
  now: number,
): ToldState {
  const { state, stateReason, refreshToken } = connection;
  const isOver = state === "ACTIVE" && refreshToken === undefined && decideFreshness(connection, now) === "ended";
  return isOver ? { state: "REAUTHORIZATION_REQUIRED", reason: "expired" } : { state, reason: stateReason };
}
