import { measureLoopHold } from "./loop-hold.js";
import { type Figures, measure, measureOnce } from "./measure.js";
import type { BenchOptions } from "./options.js";
import { orderFor } from "./order.js";
import { stopPinned } from "./pinned-process.js";
import type { Point, SubjectName } from "./points.js";
import { type Stage, startLoad } from "./stage.js";
import type { LoopHolds, Sample } from "./summary.js";

/** What is measured: points, each with the subjects that were chosen. */
export type Plan = ReadonlyArray<{ readonly point: Point; readonly subjects: readonly SubjectName[] }>;

/** Who is told of a run while it goes on. */
export interface Listener {
  onProgress(text: string): void;
  /** After each round, with the samples of all rounds so far. */
  onRound(samples: readonly Sample[]): void;
}

/** Measures every subject at every point in each round, so that a slow minute of the machine meets all of them. */
export async function runRounds(
  stage: Stage,
  plan: Plan,
  options: BenchOptions,
  { onProgress, onRound }: Listener,
): Promise<Sample[]> {
  await warmUp(stage, plan, options, onProgress);
  const samples: Sample[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    for (const { point, subjects } of plan) {
      onProgress(`round ${round} of ${options.rounds}: ${point.name}, ${subjects.join(", ")}`);
      const look = (name: SubjectName) => measureIt(stage, point, name, options);
      const figures = point.pauseMs > 0 ? await Promise.all(subjects.map(look)) : await inTurn(subjects, look);
      for (const [at, subject] of subjects.entries())
        samples.push({ round, point: point.name, subject, figures: figures[at] as Figures });
    }
    onRound(samples);
  }
  return samples;
}

async function inTurn<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}

/** What mostly waits is measured beside the others, by callers of its own. */
async function measureIt(stage: Stage, point: Point, name: SubjectName, options: BenchOptions): Promise<Figures> {
  const subject = stage.subject(name, point);
  const order = orderOf(stage, point, name, timesOf(point, options));
  if (point.pauseMs === 0) return measure(subject, order, stage.load, stage.yardstick);
  const load = await startLoad(stage.providers);
  try {
    return { ...(await measureOnce(subject, order, load)), disturbed: false };
  } finally {
    await stopPinned(load);
  }
}

/** After a pause: each caller makes one call, then another one that counts. */
function timesOf({ pauseMs }: Point, { seconds, warmSeconds }: BenchOptions): Times {
  return pauseMs > 0 ? { warmMs: 1000, ms: pauseMs } : { warmMs: warmSeconds * 1000, ms: seconds * 1000 };
}

type Times = Parameters<typeof orderFor>[3];

function orderOf({ subject, providers }: Stage, point: Point, name: SubjectName, times: Times) {
  return orderFor(point, subject(name, point), providers[point.provider].origin, times);
}

/** Each subject runs for a while before anything counts: code that V8 has not compiled yet costs several times as much. */
async function warmUp(
  stage: Stage,
  plan: Plan,
  { warmUpSeconds }: BenchOptions,
  onProgress: Listener["onProgress"],
): Promise<void> {
  const times = { warmMs: warmUpSeconds * 1000, ms: 1 };
  const isWarm = new Set<string>();
  for (const { point, subjects } of plan) {
    for (const name of subjects) {
      const what = `${name} ${point.wire} ${point.provider} ${point.callers}`;
      if (point.pauseMs > 0 || isWarm.has(what)) continue;
      isWarm.add(what);
      onProgress(`warming up: ${what}`);
      await measureOnce(stage.subject(name, point), orderOf(stage, point, name, times), stage.load);
    }
  }
}

/** Whose event loops are watched: what a bare relay's does is what Node.js, undici and the machine do. */
const WATCHED: readonly SubjectName[] = ["bare", "relay"];

/** Afterwards, so that the clock which finds it out costs the other figures nothing. */
export async function runLoopHolds(stage: Stage, plan: Plan, options: BenchOptions): Promise<LoopHolds> {
  const holds: Record<string, Record<string, number>> = {};
  for (const { point, subjects } of plan.filter(({ point: { pauseMs } }) => pauseMs === 0)) {
    for (const name of WATCHED.filter((watched) => subjects.includes(watched))) {
      const order = orderOf(stage, point, name, timesOf(point, options));
      holds[point.name] = {
        ...holds[point.name],
        [name]: await measureLoopHold(stage, stage.subject(name, point), order),
      };
    }
  }
  return holds;
}
