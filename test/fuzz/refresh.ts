import { createModel } from "../refresh-model/model.js";
import type { CampaignOptions, CampaignResult } from "./campaign.js";

/** Things that may go wrong in one run. */
const DEVIATIONS = 3;

/**
 * Looks at so many runs of the refresh protocol: 3 processes and 2 connections, the relay's own code over its own store,
 * with refusals, kills, halts, cut and late answers in every order, the fewest first; strict, and with a grace window.
 */
export async function fuzzRefresh({ count }: CampaignOptions): Promise<CampaignResult> {
  const model = await createModel();
  const findings: Array<CampaignResult["findings"][number]> = [];
  let tried = 0;
  try {
    for (const graceMs of [0, 30_000]) {
      const maxRuns = Math.ceil(count / 2);
      const { runs, found } = await model.explore({ deviations: DEVIATIONS, graceMs, maxRuns });
      tried += runs;
      if (found === undefined) continue;
      const { problem, choices } = found;
      findings.push({ problem, input: JSON.stringify(choices), origin: `choices with ${graceMs} ms of grace` });
    }
  } finally {
    model.close();
  }
  return { tried, notes: [`at most ${DEVIATIONS} things go wrong in each run`], findings };
}
