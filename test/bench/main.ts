import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { build, buildCommit } from "./build.js";
import { measureCallTokenCost } from "./call-token-cost.js";
import { measureMemory, memoryTableFrom } from "./memory.js";
import { type BenchOptions, parseBenchOptions, USAGE } from "./options.js";
import { comparedTo, LARGE, ON_DEMAND, POINTS, type SubjectName } from "./points.js";
import { type Plan, runLoopHolds, runRounds } from "./rounds.js";
import { type Cast, startStage } from "./stage.js";
import { comparisonFrom, type LoopHolds, machine, rowsFrom, type Sample, type Summary } from "./summary.js";
import { tableFrom } from "./table.js";

const RESULTS = fileURLToPath(new URL("results", import.meta.url));

/**
 * Measures the relay beside a bare relay and what else could stand in its place, each in a process of its own, and
 * prints what each costs. Nothing of it is a test: figures depend on the machine.
 *
 * See `USAGE` for the options; a run as it is takes some six minutes.
 */
async function main(): Promise<number> {
  let options: BenchOptions;
  try {
    options = parseBenchOptions(process.argv.slice(2), RESULTS);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}`);
    return 2;
  }
  build({ withRelay: !options.built });
  if (options.callToken) {
    process.stdout.write(`${JSON.stringify(await measureCallTokenCost())}\n`);
    return 0;
  }
  if (options.memory) {
    process.stdout.write(`${memoryTableFrom(await measureMemory(writeProgress))}\n`);
    return 0;
  }
  const summary = await (options.compare === undefined ? run(options) : runCompared(options, options.compare));
  write(summary, options);
  process.stdout.write(`${tableFrom(summary)}\nWritten to ${options.out}\n`);
  return 0;
}

async function run(options: BenchOptions): Promise<Summary> {
  const plan = planFor(options);
  const stage = await startStage(castOf(plan));
  try {
    const onRound = (samples: readonly Sample[]) => write(summaryOf(samples, options, {}), options);
    const samples = await runRounds(stage, plan, options, { onProgress: writeProgress, onRound });
    return summaryOf(samples, options, await runLoopHolds(stage, plan, options));
  } finally {
    await stage.close();
  }
}

/** In new processes each round: two processes with the same code differ by more than most changes do. */
async function runCompared(options: BenchOptions, commit: string): Promise<Summary> {
  const checkout = buildCommit(commit);
  const comparedOf = (samples: readonly Sample[]): Summary => ({
    ...summaryOf(samples, options, {}),
    compared: { commit, points: comparisonFrom(samples) },
  });
  try {
    const samples: Sample[] = [];
    for (let round = 1; round <= options.rounds; round++) {
      const plan = planFor(options).map(({ point, subjects }) => ({ point, subjects: inTurn(round, subjects) }));
      const stage = await startStage(castOf(plan), checkout);
      try {
        writeProgress(`round ${round} of ${options.rounds}, in new processes`);
        const onRound = (own: readonly Sample[]) => {
          samples.push(...own.map((sample) => ({ ...sample, round })));
          write(comparedOf(samples), options);
        };
        await runRounds(stage, plan, { ...options, rounds: 1 }, { onProgress: writeProgress, onRound });
      } finally {
        await stage.close();
      }
    }
    return comparedOf(samples);
  } finally {
    rmSync(checkout, { recursive: true, force: true });
  }
}

function castOf(plan: Plan): Cast {
  return plan.flatMap(({ point, subjects }) => subjects.map((name) => ({ name, setup: point })));
}

/** Whoever is first has the quieter half of a machine that grows busy. */
function inTurn(round: number, subjects: readonly SubjectName[]): readonly SubjectName[] {
  const relays = subjects.filter((name) => name.startsWith("relay"));
  return relays.flatMap((name) => (round % 2 === 1 ? [name, comparedTo(name)] : [comparedTo(name), name]));
}

function summaryOf(samples: readonly Sample[], { seconds }: BenchOptions, loopHoldMs: LoopHolds): Summary {
  const rounds = Math.max(...samples.map(({ round }) => round));
  return { machine: machine(), at: new Date().toISOString(), rounds, seconds, rows: rowsFrom(samples), loopHoldMs };
}

/** After each round, so that what was measured is kept when the run is ended. */
function write(summary: Summary, { out }: BenchOptions): void {
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, `${JSON.stringify(summary, null, 2)}\n`);
}

function writeProgress(text: string): void {
  process.stderr.write(`${text}\n`);
}

function planFor({ points, subjects, largeStore }: BenchOptions): Plan {
  const isUsual = (name: SubjectName) => !ON_DEMAND.has(name) && (!LARGE.has(name) || largeStore);
  const isChosen = (name: SubjectName) => subjects?.includes(name) ?? isUsual(name);
  return POINTS.filter(({ name }) => points?.includes(name) ?? true)
    .map((point) => ({ point, subjects: point.subjects.filter(isChosen) }))
    .filter((planned) => planned.subjects.length > 0);
}

process.exitCode = await main();
