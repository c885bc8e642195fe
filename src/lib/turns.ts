import { setImmediate as nextTurn } from "node:timers/promises";

/** Large work as a generator. It yields about once a millisecond, where other work may run in between. */
export type Steps<Result> = Generator<void, Result, void>;

/** When to stop work, and whose it is. */
export interface WorkLimits {
  /** Aborts when the caller disconnects: nobody waits for the result any more. */
  readonly signal: { readonly aborted: boolean; readonly reason: unknown } | undefined;
  /** Deadline of the call, in milliseconds of `performance.now()`. */
  readonly deadline: number;
  /** Owner of the work: owners take turns, however much work each of them has. */
  readonly memory: { readonly owner: unknown };
}

/** Shares the event loop between large work and everything else. */
export interface Turns {
  /**
   * Runs the work, a few steps in each turn of the event loop. Rejects with what the work throws, with the signal's
   * reason when the caller disconnects, and with the error of `late` when the deadline passes first.
   */
  take<Result>(steps: Steps<Result>, limits: WorkLimits): Promise<Result>;
}

/** Time for all large work in one turn of the event loop, in milliseconds: a tenth of what a caller would notice. */
const TURN_MS = 2;

/**
 * Creates the scheduler for large work in one process. All large work together takes about {@link TURN_MS} of each
 * turn of the event loop, in its check phase, so that ten large calls delay other calls no more than one. It is
 * round-robin over owners, and over the jobs of each owner.
 *
 * @param late creates the error for work whose deadline passes.
 */
export function createTurns(late: () => Error): Turns {
  /** Queues by owner; the first entry is next. */
  const lines = new Map<unknown, Job[]>();
  let isArmed = false;

  function arm(): void {
    if (isArmed || lines.size === 0) return;
    isArmed = true;
    setImmediate(onCheckPhase);
  }

  function onCheckPhase(): void {
    isArmed = false;
    const until = performance.now() + TURN_MS;
    do goOnWithNext(until);
    while (lines.size > 0 && performance.now() < until);
    arm();
  }

  function goOnWithNext(until: number): void {
    for (const [owner, line] of lines) {
      lines.delete(owner);
      const job = line.shift();
      if (job?.goOn(until) === true) line.push(job);
      if (line.length > 0) lines.set(owner, line);
      return;
    }
  }

  return {
    take(steps, limits) {
      return new Promise((resolve, reject) => {
        const { owner } = limits.memory;
        const job = { goOn: (until: number) => goOn(steps, limits, late, until, resolve, reject) };
        const line = lines.get(owner);
        if (line === undefined) lines.set(owner, [job]);
        else line.push(job);
        arm();
      });
    },
  };
}

/** Runs all of the work at once: for small work, or when nothing else is waiting. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/**
 * Repeats work on at most `size` items, in a turn of the event loop each, until there were fewer.
 *
 * @param work resolves to the number of items.
 */
export async function inBatches(size: number, work: () => Promise<number>): Promise<void> {
  while ((await work()) === size) await nextTurn();
}

/** Work that several may want at the same time. */
export interface SingleFlight<Result> {
  /** Begins the work, or joins it while it is in progress. */
  run(): Promise<Result>;
  /** The work in progress. */
  readonly current: Promise<Result> | undefined;
}

/** Does work for all who want it while it is in progress. */
export function createSingleFlight<Result>(work: () => Promise<Result>): SingleFlight<Result> {
  let current: Promise<Result> | undefined;
  return {
    run() {
      current ??= work().finally(() => {
        current = undefined;
      });
      return current;
    },
    get current() {
      return current;
    },
  };
}

/** Queued work. */
interface Job {
  /** Works until the time `until`; true when something is left to do. */
  goOn(until: number): boolean;
}

function goOn<Result>(
  steps: Steps<Result>,
  { signal, deadline }: WorkLimits,
  late: () => Error,
  until: number,
  resolve: (result: Result) => void,
  reject: (reason: unknown) => void,
): boolean {
  if (signal?.aborted === true) {
    reject(signal.reason);
    return false;
  }
  if (performance.now() >= deadline) {
    reject(late());
    return false;
  }
  try {
    do {
      const step = steps.next();
      if (step.done !== true) continue;
      resolve(step.value);
      return false;
    } while (performance.now() < until);
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}
