import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { atOnce, createTurns, type Steps } from "../../src/lib/turns.js";
import { lateWork } from "../../src/model/errors.js";
import { ENDLESS } from "../support/roomy.js";

let now = 0;

beforeEach(() => {
  vi.spyOn(performance, "now").mockImplementation(() => now);
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Each step takes so long; notes who took it. */
function* work(name: string, steps: number, stepMs: number, seen: string[]): Steps<string> {
  for (let at = 0; at < steps; at++) {
    now += stepMs;
    seen.push(name);
    yield;
  }
  return `${name} is done`;
}

/** Notes each turn of the event loop until it is stopped. */
function watchTurns(seen: string[]): () => void {
  let isOver = false;
  const next = () => {
    if (isOver) return;
    seen.push("|");
    setImmediate(next);
  };
  next();
  return () => {
    isOver = true;
  };
}

describe("createTurns()", () => {
  it("gives the event loop back after two milliseconds, for all work together", async () => {
    const turns = createTurns(lateWork);
    const seen: string[] = [];
    const stop = watchTurns(seen);
    const done = ["a", "b", "c"].map((name) => turns.take(work(name, 9, 0.5, seen), ENDLESS));
    expect(await Promise.all(done)).toEqual(["a is done", "b is done", "c is done"]);
    stop();
    for (const turn of seen.join("").split("|")) expect(turn.length).toBeLessThanOrEqual(4);
    expect(seen.filter((mark) => mark !== "|").length).toBe(27);
  });

  it("takes each in its turn, and a long one holds up no short one", async () => {
    const turns = createTurns(lateWork);
    const seen: string[] = [];
    const long = turns.take(work("l", 40, 1, seen), ENDLESS);
    const short = turns.take(work("s", 4, 1, seen), ENDLESS);
    await short;
    expect(seen.join("")).toMatch(/^llssllss/);
    await long;
  });

  it("does much that takes no time in one turn", async () => {
    const turns = createTurns(lateWork);
    const seen: string[] = [];
    const done = Promise.all([
      turns.take(work("a", 1000, 0, []), ENDLESS),
      turns.take(work("b", 1000, 0, []), ENDLESS),
    ]);
    setImmediate(() => seen.push("next turn"));
    await done;
    expect(seen).toEqual([]);
  });

  it("rejects with what the work throws, and goes on with others", async () => {
    const turns = createTurns(lateWork);
    const failing = (function* (): Steps<void> {
      yield;
      throw new Error("not JSON");
    })();
    const other = turns.take(work("a", 10, 1, []), ENDLESS);
    await expect(turns.take(failing, ENDLESS)).rejects.toThrow("not JSON");
    expect(await other).toBe("a is done");
  });

  it.each([0, 3])("does no more when the caller goes after %d turns", async (after) => {
    const turns = createTurns(lateWork);
    const controller = new AbortController();
    const seen: string[] = [];
    const taken = turns.take(work("a", 100, 1, seen), { ...ENDLESS, signal: controller.signal });
    const outcome = expect(taken).rejects.toThrow("gone");
    for (let turn = 0; turn < after; turn++) await new Promise((resolve) => setImmediate(resolve));
    controller.abort(new Error("gone"));
    const before = seen.length;
    await outcome;
    expect(seen.length).toBe(before);
    expect(before).toBeLessThanOrEqual(2 * (after + 1));
  });
});

describe("an owner", () => {
  it("gets as many turns with one work as another with many", async () => {
    const turns = createTurns(lateWork);
    const seen: string[] = [];
    const greedy = { ...ENDLESS, memory: { owner: "greedy" } };
    const many = Array.from({ length: 20 }, () => turns.take(work("g", 20, 1, seen), greedy));
    await turns.take(work("o", 20, 1, seen), { ...ENDLESS, memory: { owner: "other" } });
    expect(seen.filter((name) => name === "g").length).toBeLessThanOrEqual(26);
    await Promise.all(many);
    expect(seen.length).toBe(21 * 20);
  });
});

describe("a deadline", () => {
  it("ends work that is not done by then, and no other", async () => {
    const turns = createTurns(lateWork);
    const seen: string[] = [];
    const late = turns.take(work("late", 100, 1, seen), { ...ENDLESS, deadline: 10 });
    const other = turns.take(work("o", 100, 1, []), ENDLESS);
    await expect(late).rejects.toMatchObject({ reason: "PROVIDER_TIMEOUT" });
    expect(seen.length).toBeLessThanOrEqual(10);
    expect(await other).toBe("o is done");
  });

  it("that has passed before the first turn lets nothing begin", async () => {
    const seen: string[] = [];
    const late = createTurns(lateWork).take(work("late", 100, 1, seen), { ...ENDLESS, deadline: now });
    await expect(late).rejects.toMatchObject({ reason: "PROVIDER_TIMEOUT" });
    expect(seen).toEqual([]);
  });
});

describe("atOnce()", () => {
  it("does everything now", () => {
    expect(atOnce(work("a", 5, 1, []))).toBe("a is done");
  });
});
