import { describe, expect, it } from "vitest";
import { fuzzUrls } from "./urls.js";

describe("fuzzUrls()", () => {
  it("finds nothing in a few hundred urls", async () => {
    const { tried, findings } = await fuzzUrls({ count: 300, seed: 2026 });
    expect(findings).toEqual([]);
    expect(tried).toBeGreaterThanOrEqual(300);
  });
});
