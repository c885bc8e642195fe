import { RelayError } from "../model/errors.js";

/** What is looked at beside calls; `file` and `pages` of SQLite alone. */
type StoreCheckName = "file" | "write" | "pages";

/** One thing that is looked at again and again. */
export interface StoreCheck {
  /** Rejects with what is wrong. Must not hold the event loop. */
  readonly look: () => Promise<void> | void;
  /** Pauses after it was well, and after it was not or an operation failed, in milliseconds. */
  readonly everyMs: number;
  readonly retryMs: number;
  /** The part of the time that looking takes at most, where it grows with the store. */
  readonly maxShare?: number;
}

/** The checks of one store. */
export type StoreChecks = Readonly<Partial<Record<StoreCheckName, StoreCheck>>>;

/** Hears of each change: what is wrong, or undefined when it is well again. */
export type OnHealth = (check: StoreCheckName, problem: Error | undefined) => void;

/** How a store stands, as far as it was looked at. */
export interface StoreHealth {
  /** What was found last of each thing that is looked at; undefined is well. */
  readonly problems: ReadonlyMap<StoreCheckName, Error | undefined>;
  /** An operation failed: looks sooner than it would have. */
  suspect(): void;
  close(): void;
}

/** Looks at the store from now on. Nothing of it keeps the process alive. */
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

/** The health of a store that nobody looks at, as that of a command. */
export const UNWATCHED: StoreHealth = { problems: new Map(), suspect: () => {}, close: () => {} };

/** Rejects with what is wrong with a store. */
export async function requireWell({ problems }: StoreHealth): Promise<void> {
  for (const problem of problems.values()) if (problem !== undefined) throw problem;
}

function watch(
  { look, everyMs, retryMs, maxShare = 1 }: StoreCheck,
  onLook: (problem: Error | undefined) => void,
): Pick<StoreHealth, "suspect" | "close"> {
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;
  let isClosed = false;
  /** When it may be looked again at the soonest, by `performance.now()`. */
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
    const restMs = (now - startedAt) / maxShare;
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
