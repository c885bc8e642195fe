import { parseArgs } from "node:util";
import { runDescriptors } from "./descriptors.js";
import { runDisconnects } from "./disconnects.js";
import { runFairness } from "./fairness.js";
import { runLoad } from "./load.js";
import { runMemoryBudget } from "./memory-budget.js";
import { held, type Row, tableFrom, told } from "./report.js";
import { runStreamMemory } from "./stream-memory.js";
import { runTenancy } from "./tenancy.js";

/** The counts, each an option of its own, and the sizes that the project promises to bear. */
const COUNTS = {
  /** Random calls of the tenancy matrix: 20 applications × 20 users × 5 providers. */
  tenancy: 20_000,
  /** Normal calls in each run of the load scenario. */
  calls: 3_000,
  loris: 500,
  // Of 200 calls at once to an origin, one application gets eight ninths.
  drips: 177,
  floods: 40,
  disconnects: 500,
  /** The same seed gives the same calls. */
  seed: 1,
} as const;

type Counts = Readonly<Record<keyof typeof COUNTS, number>>;

const SCENARIOS: Readonly<Record<string, (counts: Counts) => Promise<Row[]>>> = {
  tenancy: ({ tenancy, seed }) => tenancyRows(tenancy, seed),
  load: (counts) => runLoad({ ...counts, concurrency: 4 }),
  disconnects: ({ disconnects, seed }) => runDisconnects(disconnects, seed),
  memory: runMemoryBudget,
  streams: runStreamMemory,
  descriptors: runDescriptors,
  fairness: runFairness,
};

/**
 * Puts a relay under stress, on this machine only, and prints what it did.
 *
 * `npm run stress -- [--only SCENARIO]… [--tenancy N] [--calls N] [--loris N] [--drips N] [--floods N]
 * [--disconnects N] [--seed N]`. Exit code 1 when something that must hold did not.
 */
async function main(): Promise<number> {
  const { only, counts } = parseOptions();
  let failed = 0;
  for (const [name, run] of Object.entries(SCENARIOS)) {
    if (only !== undefined && !only.includes(name)) continue;
    const startedAt = performance.now();
    const rows = await run(counts);
    failed += rows.filter(({ holds }) => holds === false).length;
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
    process.stdout.write(`${tableFrom(`${name} (${seconds} s)`, rows)}\n`);
  }
  process.stdout.write(failed === 0 ? "Everything held.\n" : `${failed} did not hold.\n`);
  return failed === 0 ? 0 : 1;
}

function parseOptions(): { only: readonly string[] | undefined; counts: Counts } {
  const names = Object.keys(COUNTS) as Array<keyof typeof COUNTS>;
  const number = { type: "string" } as const;
  const options = Object.fromEntries(names.map((name) => [name, number] as const));
  const { values } = parseArgs({ options: { ...options, only: { type: "string", multiple: true } } });
  const given = values as Readonly<Record<string, string | undefined>>;
  const counts = Object.fromEntries(names.map((name) => [name, Number(given[name] ?? COUNTS[name])])) as Counts;
  return { only: values.only, counts };
}

async function tenancyRows(calls: number, seed: number): Promise<Row[]> {
  const size = { applications: 20, users: 20, providers: 5, calls, concurrency: 64, seed };
  const { connections, strangers, mismatches, seconds } = await runTenancy(size);
  return [
    told("applications × users × providers", "20 × 20 × 5, the same user ids in all applications"),
    told("connections, each with a token of its own", connections),
    told("calls, 64 at once, over the JSON route, gRPC and the pass-through", `${calls} in ${seconds.toFixed(1)} s`),
    told("of them for a user of another application", strangers),
    held(
      "tokens or answers mixed up",
      [mismatches.length, ...mismatches.slice(0, 3)].join("; "),
      mismatches.length === 0,
    ),
  ];
}

process.exitCode = await main();
