import type { Connection, NewConnection } from "../oauth/connection.js";
import { CONNECTION_COLUMNS, type ConnectionRow, connectionFromRow, rowFromConnection } from "./connection-row.js";
import { CLOCK } from "./postgres-session.js";

/** What is read of a connection: its columns, and what the database's clock says. */
export const CONNECTION_READ = `${CONNECTION_COLUMNS}, ${CLOCK} AS clock`;

/** A row of `connections`: what users and providers write is kept as bytes, since PostgreSQL's text holds no NUL. */
export type PostgresConnectionRow = Omit<ConnectionRow, "user_id" | "token_type" | "scope"> & {
  readonly user_id: Buffer;
  readonly token_type: Buffer;
  readonly scope: Buffer;
};

/** The same as it is read. */
export type PostgresConnectionRead = PostgresConnectionRow & { readonly clock: number };

/**
 * Reads a row. Ends of leases and waits are by the database's clock; they are told by that of this process, whose
 * other times they are compared with.
 *
 * @param now milliseconds since the epoch when the row was read.
 */
export function connectionFromPostgres({ clock, ...row }: PostgresConnectionRead, now: number): Connection {
  const local = (time: number | null) => (time === null ? null : time - clock + now);
  return connectionFromRow({
    ...row,
    user_id: row.user_id.toString(),
    token_type: row.token_type.toString(),
    scope: row.scope.toString(),
    next_try_at: local(row.next_try_at),
    lease_until: local(row.lease_until),
  });
}

/** Makes a new row: version 1, created and updated at `now`. */
export function postgresFromConnection(connection: NewConnection, now: number): PostgresConnectionRow {
  const row = rowFromConnection(connection, now);
  return {
    ...row,
    user_id: Buffer.from(row.user_id),
    token_type: Buffer.from(row.token_type),
    scope: Buffer.from(row.scope),
  };
}
