/** Work on something large: it yields wherever something else may be done in between, about once in a millisecond. */
export type Steps<Result> = Generator<void, Result, void>;

/** How long work may go on. */
export interface WorkLimits {
  /** Aborts when the caller is gone: nobody waits for what is left of the work. */
  readonly signal: { readonly aborted: boolean; readonly reason: unknown } | undefined;
  /** When the call must have ended, in milliseconds of `performance.now()`. */
  readonly deadline: number;
  /** Whose work it is: owners take turns, however much work each of them has. */
  readonly memory: { readonly owner: unknown };
}

/** Shares the event loop between large work and everything else. */
export interface Turns {
  /**
   * Does the work, a few steps in each turn of the event loop. Rejects with what the work throws, with the signal's reason
   * when the caller is gone, and with that of `late` when the deadline passes before the work is done.
   */
  take<Result>(steps: Steps<Result>, limits: WorkLimits): Promise<Result>;
}

/** Of one turn of the event loop, for all large work together, in milliseconds: a tenth of what a caller would notice. */
const TURN_MS = 2;

/**
 * Creates the turns of one process. However much large work there is, it takes so much of one turn of the event loop and
 * no more, so that other calls are held up as little by ten of it as by one; each owner gets its turn after the others,
 * and each work of an owner after the others of that owner.
 *
 * @param late makes what work rejects with when its deadline passes.
 */
export function createTurns(late: () => Error): Turns {
  /** The owner that comes next stands first. */
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

/** All of the work at once: for a little of it, or where nobody else waits. */
export function atOnce<Result>(steps: Steps<Result>): Result {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Work in line. */
interface Job {
  /** True when something is left to do. */
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
