import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRandom } from "../support/random.js";
import { createModel, type Model } from "./model.js";

let model: Model;
beforeAll(async () => {
  model = await createModel();
});
afterAll(() => model.close());

const MODELS = [
  { deviations: 1, processes: 3, tokens: 2, graceMs: 0 },
  { deviations: 1, processes: 3, tokens: 2, graceMs: 30_000 },
  { deviations: 1, processes: 3, tokens: 1, graceMs: 0, stalls: true, endsFamilies: false },
  { deviations: 2, processes: 2, tokens: 1, graceMs: 0, maxRuns: 250, random: createRandom(1) },
  {
    deviations: 2,
    processes: 2,
    tokens: 1,
    graceMs: 0,
    stalls: true,
    endsFamilies: false,
    maxRuns: 250,
    random: createRandom(2),
  },
];

describe("the refresh protocol", () => {
  it.each(MODELS)(
    "loses no token that somebody could know, whatever goes wrong $deviations times: $processes processes, $tokens tokens, $graceMs ms of grace",
    async (options) => {
      const { levels, found } = await model.explore(options);
      expect(found).toBeUndefined();
      expect(levels.map(({ runs }) => runs)).toEqual(levels.map(({ all }) => Math.min(all, options.maxRuns ?? all)));
      expect(levels[1]?.all).toBeGreaterThan(50);
    },
    60_000,
  );

  it("loses one by the rule that a lease may be overtaken at its end, as the model finds", async () => {
    const { found } = await model.explore({ ...MODELS[0], deviations: 1, overtakesAtEnd: true });
    expect(found?.problem).toMatch(/again while .* lives with its answer/);
  });
});
