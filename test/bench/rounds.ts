import { measureLoopHold } from "./loop-hold.js";
import { measure, measureOnce } from "./measure.js";
import type { BenchOptions } from "./options.js";
import { orderFor } from "./order.js";
import type { Point, SubjectName } from "./points.js";
import type { Stage } from "./stage.js";
import type { Subject } from "./subject.js";
import type { LoopHolds, Sample } from "./summary.js";

/** What is measured: points, each with the subjects that were chosen. */
export type Plan = ReadonlyArray<{ readonly point: Point; readonly subjects: readonly SubjectName[] }>;

/** Measures every subject at every point in each round, so that a slow minute of the machine meets all of them. */
export async function runRounds(
  stage: Stage,
  plan: Plan,
  options: BenchOptions,
  onProgress: (text: string) => void,
): Promise<Sample[]> {
  await warmUp(stage, plan, options, onProgress);
  const samples: Sample[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    for (const { point, subjects } of plan) {
      for (const name of subjects) {
        onProgress(`round ${round} of ${options.rounds}: ${point.name}, ${name}`);
        const subject = stage.subjects.get(name) as Subject;
        const order = orderFor(point, subject, stage.providerPort, timesOf(options));
        samples.push({ round, point: point.name, subject: name, figures: await measureIt(stage, subject, order) });
      }
    }
  }
  return samples;
}

/** Each subject runs for a while before anything counts: code that V8 has not compiled yet costs several times as much. */
async function warmUp(
  stage: Stage,
  plan: Plan,
  { warmUpSeconds }: BenchOptions,
  onProgress: (text: string) => void,
): Promise<void> {
  const times = { warmMs: warmUpSeconds * 1000, ms: 1 };
  const isWarm = new Set<string>();
  for (const { point, subjects } of plan) {
    for (const name of subjects) {
      if (isWarm.has(`${name} ${point.wire}`)) continue;
      isWarm.add(`${name} ${point.wire}`);
      onProgress(`warming up: ${point.wire}, ${name}`);
      const subject = stage.subjects.get(name) as Subject;
      await measureOnce(subject, orderFor(point, subject, stage.providerPort, times), stage.load);
    }
  }
}

/** Whose event loops are watched: what a bare relay's does is what Node.js, undici and the machine do. */
const WATCHED: readonly SubjectName[] = ["bare", "relay"];

/** Afterwards, so that the clock which finds it out costs the other figures nothing. */
export async function runLoopHolds(stage: Stage, plan: Plan, options: BenchOptions): Promise<LoopHolds> {
  const holds: Record<string, Record<string, number>> = {};
  for (const { point, subjects } of plan) {
    for (const name of WATCHED.filter((watched) => subjects.includes(watched))) {
      const subject = stage.subjects.get(name) as Subject;
      const order = orderFor(point, subject, stage.providerPort, timesOf(options));
      holds[point.name] = { ...holds[point.name], [name]: await measureLoopHold(stage, subject, order) };
    }
  }
  return holds;
}

function measureIt({ load, yardstick }: Stage, subject: Subject, order: ReturnType<typeof orderFor>) {
  return measure(subject, order, load, yardstick);
}

function timesOf({ seconds, warmSeconds }: BenchOptions) {
  return { warmMs: warmSeconds * 1000, ms: seconds * 1000 };
}
