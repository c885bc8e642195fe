import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chosenFrom } from "./chosen.js";
import { type Copy, createCopy } from "./copy.js";
import { type Guard, readSources, withoutGuard } from "./guard.js";
import { GUARDS } from "./guards.js";
import { runTests, type Verdict } from "./run-tests.js";

/**
 * Takes out each guard of the source in turn, in a copy of the working tree, and shows that a test fails without it.
 *
 * `npm run mutants -- [--list] [--only NAME]… [--jobs N]`. Exit code 1 when a guard survives, when its text does not
 * stand in the source exactly once, when no guard has a NAME, or when the chosen tests fail already with all guards in
 * place.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      list: { type: "boolean" },
      only: { type: "string", multiple: true },
      jobs: { type: "string", default: "2" },
    },
  });
  const guards = chosenFrom(GUARDS, values.only);
  if ("problem" in guards) return fail(guards.problem);
  if (values.list) return list(guards);
  const copies = Array.from({ length: Math.max(1, Number(values.jobs) || 1) }, createCopy);
  try {
    return await check(guards, copies);
  } finally {
    for (const copy of copies) copy.remove();
  }
}

async function check(guards: readonly Guard[], copies: readonly Copy[]): Promise<number> {
  const tests = [...new Set(guards.flatMap((guard) => guard.tests))];
  print(`${tests.length} test files with all guards in place`);
  const unmutated = await runTests((copies[0] as Copy).folder, tests);
  if (unmutated.result !== "passed") return fail(`They must pass first. ${textOf(unmutated)}`);
  const waiting = [...guards];
  const verdicts: Verdict[] = [];
  const work = async (copy: Copy) => {
    for (let guard = waiting.shift(); guard !== undefined; guard = waiting.shift()) {
      const verdict = await runWithout(guard, copy);
      verdicts.push(verdict);
      print(`${guard.name.padEnd(WIDTH)}  ${textOf(verdict)}`);
    }
  };
  await Promise.all(copies.map(work));
  return summary(verdicts);
}

/** Breaks the copy, and mends it for the next guard. */
async function runWithout(guard: Guard, copy: Copy): Promise<Verdict> {
  const source = withoutGuard(readSources(copy.folder), guard);
  if (source === undefined) return { result: "broken", problem: "its text does not stand in src/ exactly once" };
  const path = join(copy.folder, "src", source.path);
  writeFileSync(path, source.mutated);
  try {
    return await runTests(copy.folder, guard.tests);
  } finally {
    writeFileSync(path, source.text);
  }
}

function summary(verdicts: readonly Verdict[]): number {
  const count = (result: Verdict["result"]) => verdicts.filter((verdict) => verdict.result === result).length;
  const broken = count("broken") === 0 ? "" : `, ${count("broken")} broken`;
  print(`\n${verdicts.length} guards, ${count("failed")} caught, ${count("passed")} survived${broken}`);
  return count("failed") === verdicts.length && verdicts.length > 0 ? 0 : 1;
}

function textOf(verdict: Verdict): string {
  if (verdict.result === "failed") return `caught by ${verdict.test}`;
  return verdict.result === "passed" ? "SURVIVED" : `BROKEN: ${verdict.problem}`;
}

function list(guards: readonly Guard[]): number {
  for (const { name, tests } of guards) print(`${name.padEnd(WIDTH)}  ${tests.join(" ")}`);
  print(`\n${guards.length} guards`);
  return 0;
}

function fail(text: string): number {
  process.stderr.write(`${text}\n`);
  return 1;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

const WIDTH = Math.max(...GUARDS.map(({ name }) => name.length));

process.exitCode = await main();
