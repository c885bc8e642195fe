import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import type { ConnectionState } from "../oauth/connection.js";
import type { Attempt } from "./attempt.js";

/**
 * Entries of an index that are counted at a time: about half a millisecond in which the event loop serves nobody else;
 * three for those that are failing, whose rows SQLite reads as well.
 */
const SLICE = 2_000;

type Slice = { readonly count: number; readonly last: number | null };

/**
 * Counts in slices, each of which sees what was committed before it: nearly right is right enough for a figure. They are
 * not told of as reads, among which they would hide those that calls wait for.
 */
export function prepareCountConnections(db: Database.Database, attempt: Attempt): () => Promise<ConnectionCounts> {
  const counterOf = (entries: string) => {
    const statement = db.prepare<[ConnectionState, number, number], Slice>(`
      SELECT count(*) AS count, max(place) AS last FROM
        (SELECT rowid AS place FROM connections ${entries} AND state = ? AND rowid > ? ORDER BY rowid LIMIT ?)`);
    return async (state: ConnectionState): Promise<number> => {
      let total = 0;
      let after = 0;
      for (;;) {
        const { count, last } = await attempt.lookUp(() => statement.get(state, after, SLICE) as Slice);
        total += count;
        if (last === null || count < SLICE) return total;
        after = last;
        await nextTurn();
      }
    };
  };
  const countState = counterOf("INDEXED BY connections_by_state WHERE true");
  const countFailing = counterOf("INDEXED BY connections_failing WHERE fail_count > 0");
  return async () => {
    const states: Array<readonly [ConnectionState, number]> = [];
    for (const state of CONNECTION_STATES) states.push([state, await countState(state)]);
    return { states: new Map(states), refreshFailing: await countFailing("ACTIVE") };
  };
}

/** How many connections there are. */
export interface ConnectionCounts {
  /** In each state. */
  readonly states: ReadonlyMap<ConnectionState, number>;
  /** Of those that are ACTIVE, the ones whose last refresh failed. */
  readonly refreshFailing: number;
}

/** Every state, whether or not a connection is in it. */
export const CONNECTION_STATES: readonly ConnectionState[] = ["ACTIVE", "REAUTHORIZATION_REQUIRED"];
