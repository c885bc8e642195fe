import { setImmediate as nextTurn } from "node:timers/promises";
import { RelayError } from "../model/errors.js";
import type { ConnectionState } from "../oauth/connection.js";
import { all, createStatement, type Database, first, type Operation } from "./database.js";

/** The checks that run in the background; `file` and `pages` only for SQLite. */
type StoreCheckName = "file" | "write" | "pages";

/** One periodic check. */
export interface StoreCheck {
  /** Rejects with the problem. Must not block the event loop. */
  readonly look: () => Promise<void> | void;
  /** Pause after a good result; `retryMs` is that after a problem or a failed operation. Milliseconds. */
  readonly everyMs: number;
  readonly retryMs: number;
  /** Largest share of the time to spend in the check, from 0 to 1, if its cost grows with the store. Default 1. */
  readonly maxShare?: number;
}

/** The checks of one store. */
type StoreChecks = Readonly<Partial<Record<StoreCheckName, StoreCheck>>>;

/** Called for each change, with the problem; undefined when the check is good again. */
export type OnHealth = (check: StoreCheckName, problem: Error | undefined) => void;

/** The health of a store, as far as checked. */
export interface StoreHealth {
  /** The last result of each check; undefined is good. */
  readonly problems: ReadonlyMap<StoreCheckName, Error | undefined>;
  /** An operation failed: runs the checks sooner than planned. */
  suspect(): void;
  close(): void;
}

/** Starts the checks of a store. They do not keep the process alive. */
export function watchStore(checks: StoreChecks, onHealth: OnHealth): StoreHealth {
  const problems = new Map<StoreCheckName, Error | undefined>();
  const watches = Object.entries(checks).map(([name, check]) => {
    problems.set(name as StoreCheckName, undefined);
    return watch(check, (problem) => {
      const before = problems.get(name as StoreCheckName);
      problems.set(name as StoreCheckName, problem);
      if (before?.message !== problem?.message) onHealth(name as StoreCheckName, problem);
    });
  });
  return {
    problems,
    suspect() {
      for (const each of watches) each.suspect();
    },
    close() {
      for (const each of watches) each.close();
    },
  };
}

/** The health of a store without checks, such as that of a command. */
export const UNWATCHED: StoreHealth = { problems: new Map(), suspect: () => {}, close: () => {} };

function watch(
  { look, everyMs, retryMs, maxShare = 1 }: StoreCheck,
  onLook: (problem: Error | undefined) => void,
): Pick<StoreHealth, "suspect" | "close"> {
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;
  let isClosed = false;
  /** When the check may run again at the earliest, by `performance.now()`. */
  let restedAt = 0;

  function lookIn(ms: number): void {
    clearTimeout(timer);
    if (!isClosed) timer = setTimeout(() => void lookNow(), ms).unref();
  }

  async function lookNow(): Promise<void> {
    const startedAt = performance.now();
    isLooking = true;
    const problem = await problemOf(look);
    isLooking = false;
    if (isClosed) return;
    onLook(problem);
    const now = performance.now();
    const restMs = (now - startedAt) * (1 / maxShare - 1);
    restedAt = now + Math.max(retryMs, restMs);
    lookIn(Math.max(problem === undefined ? everyMs : retryMs, restMs));
  }

  lookIn(0);
  return {
    suspect: () => isLooking || lookIn(Math.max(0, restedAt - performance.now())),
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

async function problemOf(look: StoreCheck["look"]): Promise<Error | undefined> {
  try {
    await look();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new RelayError("STORE_UNAVAILABLE", "The relay's store cannot be used.");
  }
}

/** Numbers of connections. */
export interface ConnectionCounts {
  /** By state. */
  readonly states: ReadonlyMap<ConnectionState, number>;
  /** ACTIVE connections whose last refresh failed. */
  readonly refreshFailing: number;
}

/** Every state, even if no connection is in it. */
const CONNECTION_STATES: readonly ConnectionState[] = ["ACTIVE", "REAUTHORIZATION_REQUIRED"];

/**
 * Index entries that SQLite counts at a time: this blocks the event loop for about half a millisecond, or three for
 * failing connections, whose rows are read as well.
 */
const SLICE = 2_000;

const countIn = (entries: string) =>
  createStatement<{ state: ConnectionState; after: number }, { count: number; last: number | undefined }>(`
   SELECT count(*) AS count, max(place) AS last FROM
       (SELECT rowid AS place FROM connections ${entries} AND state = :state AND rowid > :after
        ORDER BY rowid LIMIT ${SLICE})`);

const COUNT_STATE = countIn("INDEXED BY connections_by_state WHERE true");
const COUNT_FAILING = countIn("INDEXED BY connections_failing WHERE fail_count > 0");

/** Counts in slices, each of which sees a different moment: a figure need not be exact. */
export async function countInSlices(database: Database): Promise<ConnectionCounts> {
  const count = async (statement: typeof COUNT_STATE, state: ConnectionState): Promise<number> => {
    let total = 0;
    let after = 0;
    for (;;) {
      const slice = await database.read(() => first(statement, { state, after }));
      total += slice?.count ?? 0;
      if (slice === undefined || slice.last === undefined || slice.count < SLICE) return total;
      after = slice.last;
      await nextTurn();
    }
  };
  const states: Array<readonly [ConnectionState, number]> = [];
  for (const state of CONNECTION_STATES) states.push([state, await count(COUNT_STATE, state)]);
  return { states: new Map(states), refreshFailing: await count(COUNT_FAILING, "ACTIVE") };
}

/** An index-only scan, as far as the table is vacuumed. */
const COUNT_ALL = createStatement<object, { state: ConnectionState; count: number }>(
  "SELECT state, count(*) AS count FROM connections GROUP BY state",
);

const COUNT_ALL_FAILING = createStatement<object, { count: number }>(
  "SELECT count(*) AS count FROM connections WHERE fail_count > 0 AND state = 'ACTIVE'",
);

/** Counts in one statement each, where nobody waits for it; rejects when one exceeds the statement timeout. */
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
