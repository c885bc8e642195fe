import fc from "fast-check";
import type { CampaignOptions, Finding } from "./campaign.js";

/** Tries one input on behalf of one worker; throws when a promise is broken. Never called twice at once for a worker. */
export type Check<Input> = (input: Input, worker: number) => Promise<void>;

/** What came of a number of inputs. */
export interface Exploration {
  readonly tried: number;
  readonly findings: readonly Finding[];
}

/** More of them say little more, and shrinking takes time. */
const MAX_FINDINGS = 12;
/** Tries to make a failing input smaller. */
const MAX_SHRINKS = 200;

/** Tries generated inputs, several at a time: each worker is a fast-check run of its own, which shrinks what fails. */
export async function explore<Input>(
  arbitrary: fc.Arbitrary<Input>,
  check: Check<Input>,
  options: CampaignOptions & { readonly workers: number },
): Promise<Exploration> {
  const findings: Finding[] = [];
  const share = Math.ceil(options.count / options.workers);
  const tried = await Promise.all(
    Array.from({ length: options.workers }, async (_, worker) => {
      const numRuns = Math.min(share, options.count - worker * share);
      return exploreAlone(
        arbitrary,
        (input) => check(input, worker),
        numRuns,
        options.seed + worker * 65_536,
        findings,
      );
    }),
  );
  return { tried: tried.reduce((sum, one) => sum + one, 0), findings };
}

/** After a finding it goes on with another seed. */
async function exploreAlone<Input>(
  arbitrary: fc.Arbitrary<Input>,
  check: (input: Input) => Promise<void>,
  numRuns: number,
  firstSeed: number,
  findings: Finding[],
): Promise<number> {
  let tried = 0;
  for (let seed = firstSeed; tried < numRuns && findings.length < MAX_FINDINGS; seed += 1) {
    const property = fc.asyncProperty(arbitrary, withShrinkLimit(check));
    const details = await fc.check(property, { seed, numRuns: numRuns - tried });
    tried += details.numRuns;
    if (details.failed) addFinding(findings, findingFrom(details));
  }
  return tried;
}

/** After the first failure only so many more inputs are tried; the rest pass, which ends the shrinking. */
function withShrinkLimit<Input>(check: (input: Input) => Promise<void>): (input: Input) => Promise<void> {
  let left = Number.POSITIVE_INFINITY;
  return async (input) => {
    if (left <= 0) return;
    left -= 1;
    try {
      await check(input);
    } catch (error) {
      left = Math.min(left, MAX_SHRINKS);
      throw error;
    }
  };
}

function findingFrom<Input>(details: fc.RunDetails<[Input]>): Finding {
  return {
    problem: messageOf(details.errorInstance),
    input: textFromInput(details.counterexample?.[0]),
    origin: `fast-check seed ${details.seed}, path ${details.counterexamplePath}`,
  };
}

/** Tries each input of a list, several at a time. */
export async function exploreList<Input>(
  inputs: readonly Input[],
  check: Check<Input>,
  workers: number,
): Promise<Exploration> {
  const findings: Finding[] = [];
  const queue = inputs.entries();
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      for (const [at, input] of queue) {
        try {
          await check(input, worker);
        } catch (error) {
          addFinding(findings, { problem: messageOf(error), input: textFromInput(input), origin: `fixed input ${at}` });
        }
      }
    }),
  );
  return { tried: inputs.length, findings };
}

/** So many of a list, in an order that the seed decides. */
export function pick<Item>(items: readonly Item[], count: number, seed: number): readonly Item[] {
  const [order = []] = fc.sample(fc.shuffledSubarray([...items], { minLength: items.length }), { seed, numRuns: 1 });
  return order.slice(0, Math.max(0, count));
}

/** The first of each problem. */
function addFinding(findings: Finding[], finding: Finding): void {
  if (findings.length < MAX_FINDINGS && findings.every(({ problem }) => problem !== finding.problem)) {
    findings.push(finding);
  }
}

/** Sums up. */
export function joined(...explorations: readonly Exploration[]): Exploration {
  return {
    tried: explorations.reduce((sum, { tried }) => sum + tried, 0),
    findings: explorations.flatMap(({ findings }) => findings),
  };
}

/** As JavaScript, bytes as text. */
function textFromInput(input: unknown): string {
  return fc.stringify(input).replace(/Buffer\.from\(\[([\d,]*)\]\)/g, (_, list: string) => {
    const text = Buffer.from(list.split(",").map(Number)).toString("latin1");
    return `Buffer.from(${JSON.stringify(list === "" ? "" : text)}, "latin1")`;
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
