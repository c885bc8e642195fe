import { describe, expect, it } from "vitest";
import { createAttempts } from "../../src/admin/admit.js";

describe("createAttempts()", () => {
  it("counts each by itself, in windows of a minute that begin with the first", () => {
    let now = 0;
    const attempts = createAttempts(2, () => now);
    const waits = () => ["a", "b"].map((whose) => attempts.waitSeconds(whose));
    attempts.add("a");
    expect(waits()).toEqual([0, 0]);
    now = 30_500;
    attempts.add("a");
    expect(waits()).toEqual([30, 0]);
    now = 60_000;
    expect(waits()).toEqual([0, 0]);
    attempts.add("a");
    expect(waits()).toEqual([0, 0]);
    attempts.add("a");
    expect(waits()).toEqual([60, 0]);
  });

  it("forgets the oldest rather than growing", () => {
    const attempts = createAttempts(1, () => 0);
    for (let n = 0; n <= 10_000; n++) attempts.add(`client ${n}`);
    expect([0, 1, 10_000].map((n) => attempts.waitSeconds(`client ${n}`))).toEqual([0, 60, 60]);
  });
});
