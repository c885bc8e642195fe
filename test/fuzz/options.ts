import { parseArgs } from "node:util";

/** Campaigns in the order they run, with the least number of inputs of each. */
const DEFAULT_COUNTS = {
  urls: 6_000,
  cases: 20_000,
  answers: 10_000,
  raw: 20_000,
  refresh: 20_000,
  tokens: 20_000,
} as const;

/** The name of a campaign. */
export type CampaignName = keyof typeof DEFAULT_COUNTS;

/** What to run. */
export interface FuzzOptions {
  readonly seed: number;
  /** Inputs by campaign, in order; those left out do not run. */
  readonly counts: ReadonlyMap<CampaignName, number>;
}

/** How to call it, for a wrong command line. */
export const USAGE =
  "usage: npm run fuzz -- [--urls N] [--cases N] [--answers N] [--raw N] [--refresh N] [--tokens N] [--seed N] [--only NAME,NAME]\n";

/** Reads the command line. Throws an Error with what is wrong. */
export function parseFuzzOptions(args: readonly string[]): FuzzOptions {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: { urls: text, cases: text, answers: text, raw: text, refresh: text, tokens: text, seed: text, only: text },
  });
  const names = Object.keys(DEFAULT_COUNTS) as CampaignName[];
  const only = values.only?.split(",") ?? names;
  const unknown = only.find((name) => !names.includes(name as CampaignName));
  if (unknown !== undefined) throw new Error(`--only: there is no campaign ${unknown}`);
  const counts = names
    .filter((name) => only.includes(name))
    .map((name) => [name, numberFrom(name, values[name], DEFAULT_COUNTS[name])] as const);
  return { seed: numberFrom("seed", values.seed, randomSeed()), counts: new Map(counts) };
}

function numberFrom(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name}: expected a whole number`);
  return Number(text);
}

function randomSeed(): number {
  return Math.floor(Math.random() * 1_000_000);
}
