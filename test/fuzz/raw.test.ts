import { describe, expect, it } from "vitest";
import { fuzzRaw } from "./raw.js";

describe("fuzzRaw()", () => {
  it("finds nothing in a few hundred connections", async () => {
    const { tried, findings } = await fuzzRaw({ count: 300, seed: 2026 });
    expect(findings).toEqual([]);
    expect(tried).toBeGreaterThanOrEqual(300);
  });
});
