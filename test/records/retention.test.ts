import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { addCall, emptyFigures, type FigureRow, figuresFromText, textFromFigures } from "../../src/records/figures.js";
import { startRetention } from "../../src/records/retention.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "../store/store-beds.js";
import { applicationForTest, NOW } from "../store/store-for-test.js";
import { blockForTest, storedCallForTest } from "./call-for-test.js";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const sealer = sealerForTest();

describe.each(STORES)("startRetention() in $name", ({ createBed }) => {
  let at: StoreBed;
  let store: Store;
  let applicationId: string;

  beforeEach(async () => {
    at = await createBed();
    store = await at.open();
    const application = applicationForTest(sealer);
    applicationId = application.id;
    await store.applications.create(application);
  });
  afterEach(() => at.remove());

  const ages = async () =>
    (await store.calls.list({ applicationId, beforeSequence: undefined, limit: 100 })).map(
      ({ firstAt }) => firstAt - NOW,
    );

  it("forgets calls after some days and captures after one, however many there are", async () => {
    const append = (startedAt: number) =>
      store.calls.append([blockForTest(applicationId, [storedCallForTest(applicationId, startedAt)])], 1000);
    for (let old = 0; old < 45; old += 1) await append(NOW - old);
    await append(NOW + 1);
    const capture = { applicationId, captureUntil: NOW, content: Buffer.from("x") };
    await store.captures.add({ ...capture, callId: "old", createdAt: NOW }, 100);
    await store.captures.add({ ...capture, callId: "new", createdAt: NOW + 6 * DAY_MS + 1 }, 100);
    const now = () => NOW + 7 * DAY_MS + 1;
    const retention = startRetention({ ...store, clock: async () => undefined, days: 7, now, onFault: () => {} });
    await retention.sweep();
    retention.close();
    expect(await ages()).toEqual([1]);
    expect(await store.captures.find("old")).toBeUndefined();
    expect(await store.captures.find("new")).toBeDefined();
  });

  it("forgets nothing because of a clock that is days ahead for some minutes, or ahead of the store's", async () => {
    await store.calls.append([blockForTest(applicationId, [storedCallForTest(applicationId, NOW)])], 1000);
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"], now: 0 });
    let aheadMs = 0;
    const now = () => NOW + Math.round(performance.now()) + aheadMs;
    const retention = startRetention({
      ...store,
      clock: async () => undefined,
      days: 7,
      now,
      onFault: () => expect.fail(),
    });
    await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
    aheadMs = 9 * DAY_MS;
    await vi.advanceTimersByTimeAsync(4 * MINUTE_MS);
    retention.close();
    vi.useRealTimers();
    expect(Math.abs(((await store.clock()) ?? Date.now()) - Date.now())).toBeLessThan(MINUTE_MS);
    const ahead = startRetention({ ...store, clock: async () => NOW, days: 7, now, onFault: () => expect.fail() });
    await ahead.sweep();
    ahead.close();
    expect(await ages()).toEqual([0]);
  });

  it("leaves one row of each hour that is over, however often the relay was started in it, and every call", async () => {
    const counted = emptyFigures();
    const times = { total: 1, relay: 1, queue: 0, token: 0, provider: 1 };
    addCall(counted, { isError: false, times });
    const hours = 24;
    const row = (ago: number): FigureRow => ({
      ...{ span: "HOUR", kind: "APPLICATION", id: applicationId },
      ...{ startAt: NOW - (NOW % 3_600_000) - ago * 3_600_000, figures: textFromFigures(counted) },
    });
    for (let start = 0; start < 20; start += 1)
      await store.figures.put(
        `start ${String(start)}`,
        Array.from({ length: hours }, (_, ago) => row(ago)),
      );
    const clock = async () => undefined;
    const retention = startRetention({ ...store, clock, days: 7, now: () => NOW, onFault: () => {} });
    await retention.sweep();
    retention.close();
    const found: Array<readonly [startAt: number, count: number]> = [];
    for await (const { startAt, figures } of store.figures.read({ ...row(0), fromAt: 0 }))
      found.push([startAt, figuresFromText(figures).count]);
    // What a process may still write stays as it is: of this hour and of the three before.
    expect(found.length).toBe(hours - 4 + 4 * 20);
    expect(found.reduce((sum, [, count]) => sum + count, 0)).toBe(hours * 20);
    expect(new Set(found.map(([startAt]) => startAt)).size).toBe(hours);
  });
});

describe("startRetention()", () => {
  it("looks once a minute when the clock is known to be steady, tells of a store that is away, and still forgets what is in the other", async () => {
    vi.useFakeTimers();
    const faults: unknown[] = [];
    const away = new Error("away");
    const deleteBefore = vi.fn(async () => 0);
    const calls = { deleteBefore };
    const captures = { deleteBefore };
    const retention = startRetention({
      calls,
      captures,
      webhooks: { deleteBefore },
      figures: { deleteBefore, merge: async () => {} },
      clock: async () => undefined,
      days: 1,
      now: Date.now,
      onFault: (error) => faults.push(error),
    });
    await vi.advanceTimersByTimeAsync(4 * MINUTE_MS);
    expect(deleteBefore).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(deleteBefore).toHaveBeenCalledTimes(5);
    deleteBefore.mockRejectedValueOnce(away);
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(faults).toEqual([away]);
    retention.close();
    await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
    expect(deleteBefore).toHaveBeenCalledTimes(10);
    vi.useRealTimers();
  });
});
