import { describe, expect, it } from "vitest";
import { fuzzCases } from "./cases.js";

describe("fuzzCases()", () => {
  it("finds nothing in a few hundred calls", async () => {
    const { tried, findings } = await fuzzCases({ count: 300, seed: 2026 });
    expect(findings).toEqual([]);
    expect(tried).toBeGreaterThanOrEqual(300);
  });
});
