import { parseArgs } from "node:util";

/** How long and what to measure. */
export interface BenchOptions {
  readonly rounds: number;
  /** Seconds of one measurement, and before it, in which nothing counts. */
  readonly seconds: number;
  readonly warmSeconds: number;
  /** Seconds that each subject runs before the first round. */
  readonly warmUpSeconds: number;
  /** Names of points; undefined: all but those of the large store. */
  readonly points: readonly string[] | undefined;
  /** Names of subjects; undefined: all. */
  readonly subjects: readonly string[] | undefined;
  /** Whether a store of 1,000,000 connections is made and measured. */
  readonly largeStore: boolean;
  /** Whether only what a call token adds to a call is measured, within this process. */
  readonly callToken: boolean;
  /** Whether only the memory of a relay is measured, at rest and under load. */
  readonly memory: boolean;
  /** Whether dist/ holds the relay that is meant, so that it is not built. */
  readonly built: boolean;
  /** A commit whose relay is measured beside this one, both in new processes each round; undefined: none. */
  readonly compare: string | undefined;
  /** Where the summary goes. */
  readonly out: string;
}

/** How to call it, for a wrong command line. */
export const USAGE = `usage: npm run bench -- [--rounds N] [--seconds N] [--warm N] [--warm-up N] [--points NAME,NAME]
  [--subjects NAME,NAME] [--large-store] [--compare COMMIT] [--built] [--out FILE]
       npm run bench -- --call-token
       npm run bench -- --memory
`;

/** Reads the command line. Throws an Error with what is wrong. */
export function parseBenchOptions(args: readonly string[], folder: string): BenchOptions {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: text,
      seconds: text,
      warm: text,
      "warm-up": text,
      points: text,
      subjects: text,
      "large-store": { type: "boolean", default: false },
      compare: text,
      "call-token": { type: "boolean", default: false },
      memory: { type: "boolean", default: false },
      built: { type: "boolean", default: false },
      out: text,
    },
  });
  return {
    rounds: Math.ceil(numberFrom("rounds", values.rounds, 3)),
    seconds: numberFrom("seconds", values.seconds, 2),
    warmSeconds: numberFrom("warm", values.warm, 1),
    warmUpSeconds: numberFrom("warm-up", values["warm-up"], 4),
    points: values.points?.split(","),
    subjects: values.subjects?.split(","),
    largeStore: values["large-store"],
    compare: values.compare,
    callToken: values["call-token"],
    memory: values.memory,
    built: values.built,
    out: values.out ?? `${folder}/latest.json`,
  };
}

function numberFrom(name: string, text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!(value > 0 && value <= 600)) throw new Error(`--${name}: expected a number from 0 to 600`);
  return value;
}
