/** Decides for one of so many; 0 is what happens when nothing goes wrong. */
export type Choose = (options: number) => number;

/** What an exploration did. */
export interface Exploration {
  readonly runs: number;
  /** What was wrong, and the choices that led there; undefined for nothing. */
  readonly found: { readonly problem: string; readonly choices: readonly number[] } | undefined;
}

/**
 * Runs every sequence of choices with at most `deviations` that are not 0, the shorter ones first, or `maxRuns` of them.
 * `run` must do the same for the same choices; it resolves to what is wrong.
 */
export async function explore(
  run: (choose: Choose) => Promise<string | undefined>,
  { deviations, maxRuns = Number.POSITIVE_INFINITY }: { readonly deviations: number; readonly maxRuns?: number },
): Promise<Exploration> {
  const waiting: Array<{ readonly prefix: readonly number[]; readonly left: number }> = [
    { prefix: [], left: deviations },
  ];
  let runs = 0;
  for (const { prefix, left } of waiting) {
    if (runs >= maxRuns) break;
    runs += 1;
    const met: number[] = [];
    const problem = await run((options) => {
      met.push(options);
      return prefix[met.length - 1] ?? 0;
    });
    if (problem !== undefined) return { runs, found: { problem, choices: prefix } };
    for (let at = prefix.length; left > 0 && at < met.length; at += 1) {
      const zeros = Array.from({ length: at - prefix.length }, () => 0);
      for (let choice = 1; choice < (met[at] ?? 0); choice += 1) {
        waiting.push({ prefix: [...prefix, ...zeros, choice], left: left - 1 });
      }
    }
  }
  return { runs, found: undefined };
}
