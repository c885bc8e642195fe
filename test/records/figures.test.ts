import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  addCall,
  addFigures,
  createFigureWriter,
  emptyFigures,
  type FigureRow,
  figuresFromText,
  percentileOf,
  textFromFigures,
} from "../../src/records/figures.js";

const timesOf = (total: number) => ({ total, relay: 1, queue: 0, token: 0, provider: total - 1 });

function figuresOfTimes(times: readonly number[]) {
  const figures = emptyFigures();
  for (const total of times) addCall(figures, { isError: total > 500, times: timesOf(total) });
  return figures;
}

describe("figures of calls", () => {
  it.each([
    ["a thousand even steps", Array.from({ length: 1000 }, (_, at) => at + 1)],
    ["one call", [7.3]],
    ["calls from a tenth of a millisecond to minutes", [0.2, 3, 45, 600, 8000, 90_000]],
  ])("tell percentiles to a tenth, of %s", (_what, times) => {
    const sorted = times.toSorted((one, other) => one - other);
    for (const share of [0.5, 0.95, 0.99]) {
      const right = sorted[Math.ceil(share * sorted.length) - 1] as number;
      const told = percentileOf(figuresOfTimes(times), "total", share) as number;
      expect(told / right).toBeGreaterThan(0.9);
      expect(told / right).toBeLessThan(1.1);
    }
  });

  it("add up, and are the same after they were stored", () => {
    const [one, other] = [figuresOfTimes([1, 2, 600]), figuresOfTimes([5000])];
    addFigures(one, figuresFromText(textFromFigures(other)));
    expect(one).toEqual(figuresOfTimes([1, 2, 600, 5000]));
    expect([one.count, one.errors]).toEqual([4, 2]);
    expect(percentileOf(emptyFigures(), "total", 0.5)).toBeUndefined();
  });

  it("stay small, however many calls there are and however long they take", () => {
    const many = figuresOfTimes(Array.from({ length: 20_000 }, (_, at) => 1.001 ** at));
    expect(textFromFigures(many).length).toBeLessThan(4000);
    expect(percentileOf(figuresOfTimes([1e12]), "total", 1)).toBeLessThan(2e6);
  });
});

describe("createFigureWriter()", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 7_200_000 }));
  afterEach(() => void vi.useRealTimers());

  function start() {
    const stored = new Map<string, FigureRow>();
    const faults: unknown[] = [];
    let away: Error | undefined;
    const writer = createFigureWriter({
      now: Date.now,
      onFault: (error) => faults.push(error),
      store: {
        async put(name, rows) {
          if (away !== undefined) throw away;
          for (const row of rows) stored.set(`${row.span} ${row.kind} ${row.id} ${row.startAt} ${name}`, row);
        },
      },
    });
    const counts = () => {
      const sums: Record<string, number> = {};
      for (const { span, kind, id, startAt, figures } of stored.values()) {
        const key = `${span} ${kind} ${id} ${startAt}`;
        sums[key] = (sums[key] ?? 0) + figuresFromText(figures).count;
      }
      return sums;
    };
    function fail(error: Error | undefined): void {
      away = error;
    }
    return { writer, counts, faults, fail };
  }

  const call = { isError: false, times: timesOf(10) };

  it("counts each call for all, its application, its provider and both together, by the minute and by the hour", async () => {
    const { writer, counts } = start();
    writer.add("a", "github", call);
    writer.add("b", "github", call);
    writer.add("b", undefined, call);
    await vi.advanceTimersByTimeAsync(60_000);
    writer.add("a", "github", call);
    await writer.close();
    expect(counts()).toEqual({
      ...{ "MINUTE ALL  7200000": 3, "MINUTE APPLICATION a 7200000": 1, "MINUTE APPLICATION b 7200000": 2 },
      ...{ "MINUTE PROVIDER github 7200000": 2, "MINUTE ALL  7260000": 1, "MINUTE APPLICATION a 7260000": 1 },
      ...{ "MINUTE PROVIDER github 7260000": 1, "HOUR ALL  7200000": 4, "HOUR APPLICATION a 7200000": 2 },
      ...{ "HOUR APPLICATION b 7200000": 2, "HOUR PROVIDER github 7200000": 3 },
      ...{ "MINUTE PAIR a github 7200000": 1, "MINUTE PAIR b github 7200000": 1, "MINUTE PAIR a github 7260000": 1 },
      ...{ "HOUR PAIR a github 7200000": 2, "HOUR PAIR b github 7200000": 1 },
    });
  });

  it("counts on in a minute to which the clock was set back", async () => {
    const { writer, counts } = start();
    for (const at of [7_200_000, 7_260_000, 7_200_500]) {
      vi.setSystemTime(at);
      writer.add("a", undefined, call);
    }
    await writer.close();
    expect(counts()).toMatchObject({ "MINUTE ALL  7200000": 2, "MINUTE ALL  7260000": 1, "HOUR ALL  7200000": 3 });
  });

  it("loses nothing of an hour that was over and written when the clock was set back into it", async () => {
    const { writer, counts } = start();
    for (const at of [7_200_000, 10_800_000, 7_300_000, 10_900_000, 7_400_000]) {
      vi.setSystemTime(at);
      writer.add("a", "github", call);
      await vi.advanceTimersByTimeAsync(5000);
    }
    await writer.close();
    expect(counts()).toMatchObject({
      "HOUR ALL  7200000": 3,
      "HOUR ALL  10800000": 2,
      "HOUR PAIR a github 7200000": 3,
    });
  });

  it("loses nothing to a store that is away for a while, and says that it was", async () => {
    const { writer, counts, faults, fail } = start();
    fail(new Error("away"));
    writer.add("a", "github", call);
    await vi.advanceTimersByTimeAsync(6000);
    expect([faults.length > 0, counts()]).toEqual([true, {}]);
    fail(undefined);
    await vi.advanceTimersByTimeAsync(6000);
    expect(counts()["HOUR ALL  7200000"]).toBe(1);
    await writer.close();
  });

  it("writes no more of an hour that others may have merged by then", async () => {
    const { writer, counts, fail } = start();
    fail(new Error("away"));
    writer.add("a", undefined, call);
    await vi.advanceTimersByTimeAsync(6000);
    fail(undefined);
    vi.setSystemTime(Date.now() + 3 * 3_600_000);
    await writer.close();
    expect(counts()).toEqual({});
  });

  it("tells no more than some hundreds of subjects apart in one span, and still counts all calls", async () => {
    const { writer, counts } = start();
    for (let at = 0; at < 2000; at += 1) writer.add(`application-${at}`, "github", call);
    await writer.close();
    const kept = (kind: string) => Object.keys(counts()).filter((key) => key.startsWith(`MINUTE ${kind} `)).length;
    expect([kept("APPLICATION"), kept("PROVIDER"), kept("PAIR")]).toEqual([498, 1, 500]);
    expect(counts()["MINUTE ALL  7200000"]).toBe(2000);
  });
});
