import type { ConnectionState } from "../tokens/connection.js";
import { CONNECTION_STATES, type ConnectionCounts } from "./connection-counts.js";
import type { Session } from "./postgres-session.js";
import { createStatement } from "./postgres-statement.js";

/** Only the index is read, as far as the table is vacuumed. */
const COUNT = createStatement<object, { state: ConnectionState; count: number }>(
  "count_connections",
  "SELECT state, count(*) AS count FROM connections GROUP BY state",
);

/** Counts connections; rejects, as any read does, when that takes longer than a statement may. */
export async function countConnections(session: Session): Promise<ConnectionCounts> {
  const rows = await session.read(({ all }) => all(COUNT, {}));
  const counts = new Map(rows.map(({ state, count }) => [state, Number(count)]));
  return new Map(CONNECTION_STATES.map((state) => [state, counts.get(state) ?? 0]));
}
