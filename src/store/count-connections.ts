import { setImmediate as nextTurn } from "node:timers/promises";
import type Database from "better-sqlite3";
import type { ConnectionState } from "../tokens/connection.js";
import type { Attempt } from "./attempt.js";
import { CONNECTION_STATES, type ConnectionCounts } from "./connection-counts.js";

/** Entries of the index that are counted at a time: about half a millisecond in which the event loop serves nobody else. */
const SLICE = 2_000;

type Slice = { readonly count: number; readonly last: number | null };

/**
 * Counts in slices, each of which sees what was committed before it: nearly right is right enough for a figure. They are
 * not told of as reads, among which they would hide those that calls wait for.
 */
export function prepareCountConnections(db: Database.Database, attempt: Attempt): () => Promise<ConnectionCounts> {
  const statement = db.prepare<[ConnectionState, number, number], Slice>(`
    SELECT count(*) AS count, max(place) AS last FROM
      (SELECT rowid AS place FROM connections WHERE state = ? AND rowid > ? ORDER BY rowid LIMIT ?)`);
  const countOne = async (state: ConnectionState): Promise<number> => {
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
  return async () => {
    const counts: Array<readonly [ConnectionState, number]> = [];
    for (const state of CONNECTION_STATES) counts.push([state, await countOne(state)]);
    return new Map(counts);
  };
}
