import { describe, expect, it } from "vitest";
import { fuzzAnswers } from "./answers.js";

describe("fuzzAnswers()", () => {
  it("finds nothing in a few hundred answers", async () => {
    const { tried, findings } = await fuzzAnswers({ count: 300, seed: 2026 });
    expect(findings).toEqual([]);
    expect(tried).toBeGreaterThanOrEqual(300);
  });
});
