/** Decides for one of so many; 0 is what happens when nothing goes wrong. */
export type Choose = (options: number) => number;

/** What an exploration did. */
export interface Exploration {
  /** By how many choices were not 0: runs that were made, and all that there are. */
  readonly levels: ReadonlyArray<{ readonly runs: number; readonly all: number }>;
  /** What was wrong, and the choices that led there; undefined for nothing. */
  readonly found: { readonly problem: string; readonly choices: readonly number[] } | undefined;
}

/** How far to look. */
export interface ExplorationBounds {
  /** Choices of a run that are not 0, at most. */
  readonly deviations: number;
  /** Where there are more runs with one number of deviations, so many of them are chosen at random. */
  readonly maxRuns?: number;
  /** From 0 to 1. */
  readonly random?: () => number;
}

/** A run that begins as another one did, and then chooses otherwise. */
interface Branch {
  readonly from: readonly number[];
  readonly at: number;
  readonly choice: number;
}

/**
 * Runs every sequence of choices with at most `deviations` that are not 0, those with fewest first. `run` must do the
 * same for the same choices; it resolves to what is wrong.
 */
export async function explore(
  run: (choose: Choose) => Promise<string | undefined>,
  { deviations, maxRuns = Number.POSITIVE_INFINITY, random = Math.random }: ExplorationBounds,
): Promise<Exploration> {
  const levels: Array<{ runs: number; all: number }> = [];
  let branches: Branch[] = [{ from: [], at: 0, choice: 0 }];
  let all = 1;
  for (let left = deviations; left >= 0 && branches.length > 0; left -= 1) {
    const level = { runs: 0, all };
    levels.push(level);
    const next: Branch[] = [];
    all = 0;
    for (const branch of branches) {
      level.runs += 1;
      const choices = choicesOf(branch);
      const met: number[] = [];
      const problem = await run((options) => {
        met.push(options);
        return choices[met.length - 1] ?? 0;
      });
      if (problem !== undefined) return { levels, found: { problem, choices } };
      for (let at = choices.length; left > 0 && at < met.length; at += 1) {
        for (let choice = 1; choice < (met[at] ?? 0); choice += 1) {
          all += 1;
          keep(next, { from: choices, at, choice }, all);
        }
      }
    }
    branches = next;
  }
  return { levels, found: undefined };

  /** Reservoir sampling (Vitter, algorithm R): each of those that were met is kept with the same chance. */
  function keep(kept: Branch[], branch: Branch, seen: number): void {
    if (kept.length < maxRuns) kept.push(branch);
    else {
      const place = Math.floor(random() * seen);
      if (place < maxRuns) kept[place] = branch;
    }
  }
}

function choicesOf({ from, at, choice }: Branch): readonly number[] {
  if (choice === 0) return [];
  return [...from, ...Array.from({ length: at - from.length }, () => 0), choice];
}
