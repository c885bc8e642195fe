import { parseArgs } from "node:util";

/** What a command line selects of the parts of a run. */
export interface Selection<Name extends string> {
  readonly seed: number;
  /** Counts by part, in order; those left out do not run. */
  readonly counts: ReadonlyMap<Name, number>;
}

/**
 * Reads `--PART N` for each part, `--seed N` and `--only PART,PART`. Throws an Error with what is wrong.
 *
 * @param defaults the count of each part, in the order in which they run.
 */
export function parseSelection<Name extends string>(
  args: readonly string[],
  defaults: Readonly<Record<Name, number>>,
): Selection<Name> {
  const names = Object.keys(defaults) as Name[];
  const text = { type: "string" } as const;
  const options = Object.fromEntries([...names, "seed", "only"].map((name) => [name, text]));
  const values: Readonly<Record<string, string | undefined>> = parseArgs({ args: [...args], options }).values;
  const only = values["only"]?.split(",") ?? names;
  const unknown = only.find((name) => !names.includes(name as Name));
  if (unknown !== undefined) throw new Error(`--only: there is no part ${unknown}`);
  const counts = names
    .filter((name) => only.includes(name))
    .map((name) => [name, numberFrom(name, values[name], defaults[name])] as const);
  const randomSeed = Math.floor(Math.random() * 1_000_000);
  return { seed: numberFrom("seed", values["seed"], randomSeed), counts: new Map(counts) };
}

/** How to call it, for a wrong command line. */
export function usageOf(command: string, defaults: Readonly<Record<string, number>>): string {
  const counts = Object.keys(defaults).map((name) => `[--${name} N]`);
  return `usage: ${command} -- ${counts.join(" ")} [--seed N] [--only NAME,NAME]\n`;
}

function numberFrom(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name}: expected a whole number`);
  return Number(text);
}
