import { describe, expect, it } from "vitest";
import { createBudget } from "../../src/relay/budget.js";

describe("createBudget()", () => {
  it("gives no share above the number of calls, until one is given back", () => {
    const budget = createBudget({ maxInFlight: 1, maxBufferedBytes: 10 });
    const first = budget.open();
    expect(budget.open()).toBeUndefined();
    first?.release();
    first?.release();
    expect(budget.inFlight).toBe(0);
    expect(budget.open()).toBeDefined();
    expect(budget.open()).toBeUndefined();
  });

  it("counts bytes over all calls, and nothing of what it refused", () => {
    const budget = createBudget({ maxInFlight: 9, maxBufferedBytes: 10 });
    const [one, two] = [budget.open(), budget.open()];
    expect(one?.reserve(6)).toBe(true);
    expect(two?.reserve(5)).toBe(false);
    expect(two?.reserve(4)).toBe(true);
    one?.giveBack(5);
    expect(budget.bufferedBytes).toBe(5);
    one?.release();
    expect(budget.bufferedBytes).toBe(4);
    expect(one?.reserve(1)).toBe(false);
    two?.release();
    expect(budget.bufferedBytes).toBe(0);
  });
});
