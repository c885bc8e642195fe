import { parseSelection, type Selection, usageOf } from "../support/selection.js";
import { createBuild } from "./build.js";
import { runDisconnects } from "./disconnects.js";
import { runExpiries } from "./expiries.js";
import { runKills, runShortLives } from "./kills.js";
import { runOperations } from "./operations.js";
import { runOutages, runPostgresOutages } from "./outages.js";
import type { PartOptions, PartReport } from "./part.js";
import { runPostgres } from "./postgres.js";
import { runStops } from "./stops.js";
import { runTerminations } from "./terminations.js";
import { runVerdicts } from "./verdicts.js";
import { runWorkers } from "./workers.js";

/** Parts in the order they run, with the count that each has of its own. */
const DEFAULT_COUNTS = {
  expiries: 40,
  kills: 300,
  "short-lives": 150,
  stops: 3,
  disconnects: 500,
  terminations: 1,
  postgres: 200,
  operations: 20,
  outages: 200,
  "outages-postgres": 200,
  verdicts: 40,
  workers: 10,
} as const;

/** The name of a part: what it counts. */
type PartName = keyof typeof DEFAULT_COUNTS;

const PARTS: Readonly<Record<PartName, (script: string, options: PartOptions) => Promise<PartReport>>> = {
  expiries: runExpiries,
  kills: runKills,
  "short-lives": runShortLives,
  stops: runStops,
  disconnects: runDisconnects,
  terminations: runTerminations,
  postgres: runPostgres,
  operations: runOperations,
  outages: runOutages,
  "outages-postgres": runPostgresOutages,
  verdicts: runVerdicts,
  workers: runWorkers,
};

/** Enough findings to see what they have in common. */
const MAX_FINDINGS = 20;

void main(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});

/**
 * Refreshes tokens while processes are killed, stopped and told to end, and callers leave; shows that no token is lost.
 * Exit code 0 when nothing was found, 1 when something was, 2 for a wrong command line.
 */
async function main(args: readonly string[]): Promise<number> {
  let options: Selection<PartName>;
  try {
    options = parseSelection(args, DEFAULT_COUNTS);
  } catch (error) {
    process.stderr.write(
      `${error instanceof Error ? error.message : error}\n${usageOf("npm run chaos", DEFAULT_COUNTS)}`,
    );
    return 2;
  }
  process.stdout.write(`seed ${options.seed}\n`);
  const build = createBuild();
  try {
    let found = 0;
    for (const [name, count] of options.counts) {
      const startedAt = performance.now();
      const report = await PARTS[name](build.script, { count, seed: options.seed });
      process.stdout.write(textOf(name, report, performance.now() - startedAt));
      found += report.findings.length;
    }
    return found === 0 ? 0 : 1;
  } finally {
    build.remove();
  }
}

function textOf(name: PartName, { lines, findings }: PartReport, ms: number): string {
  const more = findings.length > MAX_FINDINGS ? [`  … and ${findings.length - MAX_FINDINGS} more`] : [];
  return `${[
    `${name}: ${Math.round(ms / 1000)} s, ${findings.length} findings`,
    ...lines.map((line) => `  ${line}`),
    ...findings.slice(0, MAX_FINDINGS).map((finding) => `  FOUND ${finding}`),
    ...more,
  ].join("\n")}\n`;
}
