import { parseSelection, type Selection, usageOf } from "../support/selection.js";
import type { Campaign, CampaignResult } from "./campaign.js";

/** Campaigns in the order they run, with the least number of inputs of each. */
const DEFAULT_COUNTS = {
  urls: 6_000,
  cases: 20_000,
  answers: 10_000,
  raw: 20_000,
  refresh: 20_000,
  tokens: 20_000,
} as const;

type CampaignName = keyof typeof DEFAULT_COUNTS;

/** Loaded when they run, so that one that is being worked on does not stop the others. */
const CAMPAIGNS: Readonly<Record<CampaignName, () => Promise<Campaign>>> = {
  urls: async () => (await import("./urls.js")).fuzzUrls,
  cases: async () => (await import("./cases.js")).fuzzCases,
  answers: async () => (await import("./answers.js")).fuzzAnswers,
  raw: async () => (await import("./raw.js")).fuzzRaw,
  tokens: async () => (await import("./tokens.js")).fuzzTokens,
  refresh: async () => (await import("./refresh.js")).fuzzRefresh,
};

/** Enough of an input to see what is wrong with it. */
const MAX_INPUT_LENGTH = 2_000;

void main(process.argv.slice(2)).then((exitCode) => {
  process.exitCode = exitCode;
});

/** 0 when nothing was found, 1 when something was, 2 for a wrong command line. */
async function main(args: readonly string[]): Promise<number> {
  let options: Selection<CampaignName>;
  try {
    options = parseSelection(args, DEFAULT_COUNTS);
  } catch (error) {
    process.stderr.write(
      `${error instanceof Error ? error.message : error}\n${usageOf("npm run fuzz", DEFAULT_COUNTS)}`,
    );
    return 2;
  }
  process.stdout.write(`seed ${options.seed}\n`);
  let found = 0;
  for (const [name, count] of options.counts) {
    const startedAt = performance.now();
    const result = await (await CAMPAIGNS[name]())({ count, seed: options.seed });
    process.stdout.write(reportOf(name, result, performance.now() - startedAt, { ...options, count }));
    found += result.findings.length;
  }
  return found === 0 ? 0 : 1;
}

function reportOf(
  name: CampaignName,
  { tried, notes, findings }: CampaignResult,
  ms: number,
  { seed, count }: { readonly seed: number; readonly count: number },
): string {
  const lines = [
    `${name}: ${tried} inputs in ${Math.round(ms / 1000)} s, ${findings.length} findings`,
    ...notes.map((note) => `  ${note}`),
    ...findings.flatMap(({ problem, input, origin }) => [
      `  FOUND ${problem}`,
      `    input: ${input.length > MAX_INPUT_LENGTH ? `${input.slice(0, MAX_INPUT_LENGTH)}…` : input}`,
      `    ${origin}; again: npm run fuzz -- --only ${name} --${name} ${count} --seed ${seed}`,
    ]),
  ];
  return `${lines.join("\n")}\n`;
}
