import { parseArgs } from "node:util";

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
export type PartName = keyof typeof DEFAULT_COUNTS;

/** What to run. */
export interface ChaosOptions {
  readonly seed: number;
  /** Counts by part, in order; those left out do not run. */
  readonly counts: ReadonlyMap<PartName, number>;
}

/** How to call it, for a wrong command line. */
export const USAGE =
  "usage: npm run chaos -- [--expiries N] [--kills N] [--short-lives N] [--stops N] [--disconnects N] [--terminations N] [--postgres N] [--operations N] [--outages N] [--outages-postgres N] [--verdicts N] [--workers N] [--seed N] [--only NAME,NAME]\n";

/** Reads the command line. Throws an Error with what is wrong. */
export function parseChaosOptions(args: readonly string[]): ChaosOptions {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      expiries: text,
      kills: text,
      "short-lives": text,
      stops: text,
      disconnects: text,
      terminations: text,
      postgres: text,
      operations: text,
      outages: text,
      "outages-postgres": text,
      verdicts: text,
      workers: text,
      seed: text,
      only: text,
    },
  });
  const names = Object.keys(DEFAULT_COUNTS) as PartName[];
  const only = values.only?.split(",") ?? names;
  const unknown = only.find((name) => !names.includes(name as PartName));
  if (unknown !== undefined) throw new Error(`--only: there is no part ${unknown}`);
  const counts = names
    .filter((name) => only.includes(name))
    .map((name) => [name, numberFrom(name, values[name], DEFAULT_COUNTS[name])] as const);
  return { seed: numberFrom("seed", values.seed, Math.floor(Math.random() * 1_000_000)), counts: new Map(counts) };
}

function numberFrom(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name}: expected a whole number`);
  return Number(text);
}
