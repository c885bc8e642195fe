import { describe, expect, it } from "vitest";
import { createBudget, type Reservation } from "../../src/call/budget.js";

describe("createBudget()", () => {
  it("lets no more calls begin than allowed, until one is given back", () => {
    const budget = createBudget({ maxInFlight: 1, maxBufferedBytes: 10 });
    const [first, second] = [budget.open("n"), budget.open("n")];
    expect([first.begin(), first.begin(), second.begin()]).toEqual([true, false, false]);
    first.release();
    first.release();
    expect(budget.inFlight).toBe(0);
    expect([second.begin(), budget.open("n").begin()]).toEqual([true, false]);
  });

  it("never lets more calls in than allowed, however many applications want some, and leaves some to each", () => {
    const budget = createBudget({ maxInFlight: 90, maxBufferedBytes: 10 });
    const callsOf = new Map<string, Reservation[]>();
    const begin = (id: string) => {
      const call = budget.open("n");
      const isIn = call.begin() && call.belongTo(id);
      if (isIn) callsOf.set(id, [...(callsOf.get(id) ?? []), call]);
      else call.release();
      return isIn;
    };
    for (const id of ["a", "b", "c", "d"]) while (begin(id)) expect(budget.inFlight).toBeLessThanOrEqual(90);
    const counts = () => ["a", "b", "c", "d"].map((id) => callsOf.get(id)?.length ?? 0);
    expect(counts()).toEqual([80, 9, 1, 0]);
    expect(budget.inFlight).toBe(90);
    // As calls end, each comes to have as many as the others.
    for (let round = 0; round < 50; round++) {
      for (const calls of callsOf.values()) for (const call of calls.splice(0, calls.length >> 1)) call.release();
      for (let at = 0; at < 90; at++) for (const id of ["a", "b", "c", "d"]) begin(id);
      expect(budget.inFlight).toBeLessThanOrEqual(90);
    }
    expect(counts()).toEqual([23, 22, 22, 21]);
  });

  it("does not count a request as a call before it is read", () => {
    const budget = createBudget({ maxInFlight: 2, maxBufferedBytes: 10 });
    const slow = Array.from({ length: 100 }, () => budget.open("n"));
    const honest = budget.open("n");
    expect([budget.inFlight, honest.reserve(1), honest.begin()]).toEqual([0, true, true]);
    // Of the others, the youngest that there may be.
    expect(slow.map((each) => each.reserve(1))).toEqual([...Array(93).fill(false), ...Array(7).fill(true)]);
  });

  it("never lets a call that is in flight give way", () => {
    const budget = createBudget({ maxInFlight: 2, maxBufferedBytes: 10 });
    const call = budget.open("n");
    call.begin();
    call.reserve(10);
    for (let at = 0; at < 10; at++) expect(budget.open("n").reserve(1)).toBe(false);
    expect(budget.bufferedBytes).toBe(10);
  });

  it("lets requests that are being read give way, oldest first, and tells them", () => {
    const budget = createBudget({ maxInFlight: 9, maxBufferedBytes: 10 });
    const gone: string[] = [];
    const open = (name: string, bytes: number) => {
      const reservation = budget.open("n");
      reservation.whenEvicted(() => void gone.push(name));
      expect(reservation.reserve(bytes)).toBe(true);
      return reservation;
    };
    const first = open("first", 4);
    open("empty", 0);
    open("third", 4);
    open("fourth", 2);
    // An older one has no claim on what a younger one holds.
    expect(first.reserve(1)).toBe(false);
    const young = open("young", 3);
    expect(gone).toEqual(["first"]);
    expect([first.reserve(1), first.begin()]).toEqual([false, false]);
    young.begin();
    expect(young.reserve(6)).toBe(true);
    expect(gone).toEqual(["first", "third", "fourth"]);
    expect(budget.bufferedBytes).toBe(9);
  });

  it("counts bytes over all calls, and nothing of what it refused", () => {
    const budget = createBudget({ maxInFlight: 9, maxBufferedBytes: 10 });
    const [one, two] = [budget.open("n"), budget.open("n")];
    expect([one.begin(), two.begin()]).toEqual([true, true]);
    expect(one.reserve(6)).toBe(true);
    expect(two.reserve(5)).toBe(false);
    expect(two.reserve(4)).toBe(true);
    one.giveBack(5);
    expect(budget.bufferedBytes).toBe(5);
    one.release();
    expect(budget.bufferedBytes).toBe(4);
    expect(one.reserve(1)).toBe(false);
    two.release();
    expect(budget.bufferedBytes).toBe(0);
  });
});
