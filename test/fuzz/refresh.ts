import { createRandom } from "../chaos/random.js";
import { createModel } from "../refresh-model/model.js";
import type { CampaignOptions, CampaignResult } from "./campaign.js";

/** Things that may go wrong in one run. */
const DEVIATIONS = 2;
const GRACES_MS = [0, 30_000];

/**
 * Looks at runs of the refresh protocol: 3 processes and 2 connections, the relay's own code over its own store, with
 * refusals, kills, halts, cut and late answers, and another order of steps. Every run in which one thing goes wrong is
 * made, and so many of those with two, chosen at random; half of them at a strict provider, half with a grace window.
 */
export async function fuzzRefresh({ count, seed }: CampaignOptions): Promise<CampaignResult> {
  const model = await createModel();
  const findings: Array<CampaignResult["findings"][number]> = [];
  const notes: string[] = [];
  let tried = 0;
  try {
    for (const graceMs of GRACES_MS) {
      const maxRuns = Math.ceil(count / GRACES_MS.length);
      const bounds = { deviations: DEVIATIONS, graceMs, maxRuns, random: createRandom(seed) };
      const { levels, found } = await model.explore(bounds);
      for (const [deviations, { runs, all }] of levels.entries()) {
        tried += runs;
        notes.push(`${graceMs / 1000} s of grace, ${deviations} things go wrong: ${runs} of ${all} runs`);
      }
      if (found === undefined) continue;
      const { problem, choices } = found;
      findings.push({ problem, input: JSON.stringify(choices), origin: `choices with ${graceMs} ms of grace` });
    }
  } finally {
    model.close();
  }
  return { tried, notes, findings };
}
