import { createModel } from "../refresh-model/model.js";
import { createRandom } from "../support/random.js";
import type { CampaignOptions, CampaignResult } from "./campaign.js";

/** Things that may go wrong in one run. */
const DEVIATIONS = 2;
/** A strict provider, one with a grace window, and one that refuses a repeated token alone, where processes stand still. */
const PROVIDERS = [
  { name: "strict", graceMs: 0 },
  { name: "30 s of grace", graceMs: 30_000 },
  { name: "refuses repeated tokens alone, with stalls", graceMs: 0, endsFamilies: false, stalls: true },
];

/**
 * Looks at runs of the refresh protocol: 3 processes and 2 connections, the relay's own code over its own store, with
 * refusals, kills, halts, cut and late answers, and another order of steps. Every run in which one thing goes wrong is
 * made, and so many of those with two, chosen at random; a third of them at each kind of provider.
 */
export async function fuzzRefresh({ count, seed }: CampaignOptions): Promise<CampaignResult> {
  const model = await createModel();
  const findings: Array<CampaignResult["findings"][number]> = [];
  const notes: string[] = [];
  let tried = 0;
  try {
    for (const { name, ...provider } of PROVIDERS) {
      const maxRuns = Math.ceil(count / PROVIDERS.length);
      const bounds = { deviations: DEVIATIONS, ...provider, maxRuns, random: createRandom(seed) };
      const { levels, found } = await model.explore(bounds);
      for (const [deviations, { runs, all }] of levels.entries()) {
        tried += runs;
        notes.push(`${name}, ${deviations} things go wrong: ${runs} of ${all} runs`);
      }
      if (found === undefined) continue;
      const { problem, choices } = found;
      findings.push({ problem, input: JSON.stringify(choices), origin: `choices, ${name}` });
    }
  } finally {
    model.close();
  }
  return { tried, notes, findings };
}
