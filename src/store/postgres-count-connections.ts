import type { ConnectionState } from "../oauth/connection.js";
import { CONNECTION_STATES, type ConnectionCounts } from "./count-connections.js";
import { createStatement, type Session } from "./postgres-session.js";

/** Only the index is read, as far as the table is vacuumed. */
const COUNT = createStatement<object, { state: ConnectionState; count: number }>(
  "count_connections",
  "SELECT state, count(*) AS count FROM connections GROUP BY state",
);
const COUNT_FAILING = createStatement<object, { count: number }>(
  "count_failing_connections",
  "SELECT count(*) AS count FROM connections WHERE fail_count > 0 AND state = 'ACTIVE'",
);

/** Counts connections; rejects, as any read does, when that takes longer than a statement may. */
export async function countConnections(session: Session): Promise<ConnectionCounts> {
  return session.read(async ({ all }) => {
    const counts = new Map((await all(COUNT, {})).map(({ state, count }) => [state, Number(count)]));
    const [failing] = await all(COUNT_FAILING, {});
    return {
      states: new Map(CONNECTION_STATES.map((state) => [state, counts.get(state) ?? 0])),
      refreshFailing: Number(failing?.count),
    };
  });
}
