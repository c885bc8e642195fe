import { setImmediate as nextTurn } from "node:timers/promises";
import type { ConnectionState } from "../oauth/connection.js";
import { all, createStatement, type Database, first, type Operation } from "./database.js";

/** How many connections there are. */
export interface ConnectionCounts {
  /** In each state. */
  readonly states: ReadonlyMap<ConnectionState, number>;
  /** Of those that are ACTIVE, the ones whose last refresh failed. */
  readonly refreshFailing: number;
}

/** Every state, whether or not a connection is in it. */
const CONNECTION_STATES: readonly ConnectionState[] = ["ACTIVE", "REAUTHORIZATION_REQUIRED"];

/**
 * Entries of an index that SQLite counts at a time: about half a millisecond in which the event loop serves nobody else;
 * three for those that are failing, whose rows it reads as well.
 */
const SLICE = 2_000;

const countIn = (name: string, entries: string) =>
  createStatement<{ state: ConnectionState; after: number }, { count: number; last: number | null }>(
    name,
    `SELECT count(*) AS count, max(place) AS last FROM
       (SELECT rowid AS place FROM connections ${entries} AND state = :state AND rowid > :after
        ORDER BY rowid LIMIT ${SLICE})`,
  );

const COUNT_STATE = countIn("count_state", "INDEXED BY connections_by_state WHERE true");
const COUNT_FAILING = countIn("count_failing", "INDEXED BY connections_failing WHERE fail_count > 0");

/** Counts in slices, each of which sees what was committed before it: nearly right is right enough for a figure. */
export async function countInSlices(database: Database): Promise<ConnectionCounts> {
  const count = async (statement: typeof COUNT_STATE, state: ConnectionState): Promise<number> => {
    let total = 0;
    let after = 0;
    for (;;) {
      const slice = await database.read(() => first(statement, { state, after }));
      total += slice?.count ?? 0;
      if (slice === undefined || slice.last === null || slice.count < SLICE) return total;
      after = slice.last;
      await nextTurn();
    }
  };
  const states: Array<readonly [ConnectionState, number]> = [];
  for (const state of CONNECTION_STATES) states.push([state, await count(COUNT_STATE, state)]);
  return { states: new Map(states), refreshFailing: await count(COUNT_FAILING, "ACTIVE") };
}

/** Only the index is read, as far as the table is vacuumed. */
const COUNT_ALL = createStatement<object, { state: ConnectionState; count: number }>(
  "count_connections",
  "SELECT state, count(*) AS count FROM connections GROUP BY state",
);

const COUNT_ALL_FAILING = createStatement<object, { count: number }>(
  "count_failing_connections",
  "SELECT count(*) AS count FROM connections WHERE fail_count > 0 AND state = 'ACTIVE'",
);

/** Counts at once, where nobody else waits for it; rejects when it takes longer than a statement may. */
export function countAtOnce(database: Database): Promise<ConnectionCounts> {
  return database.read(function* (): Operation<ConnectionCounts> {
    const counts = new Map((yield* all(COUNT_ALL, {})).map(({ state, count }) => [state, count]));
    const failing = yield* first(COUNT_ALL_FAILING, {});
    return {
      states: new Map(CONNECTION_STATES.map((state) => [state, counts.get(state) ?? 0])),
      refreshFailing: failing?.count ?? 0,
    };
  });
}
