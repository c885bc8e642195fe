import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startRetention } from "../../src/records/retention.js";
import type { Store } from "../../src/store/store.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
import { STORES, type StoreBed } from "../store/store-beds.js";
import { applicationForTest, NOW } from "../store/store-for-test.js";
import { blockForTest, storedCallForTest } from "./call-for-test.js";

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
    const retention = startRetention({ ...store, days: 7, now: () => NOW + 7 * DAY_MS + 1, onFault: () => {} });
    await retention.sweep();
    retention.close();
    expect(await ages()).toEqual([1]);
    expect(await store.captures.find("old")).toBeUndefined();
    expect(await store.captures.find("new")).toBeDefined();
  });
});

describe("startRetention()", () => {
  it("looks once a minute, tells of a store that is away, and still forgets what is in the other", async () => {
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
      figures: { deleteBefore },
      days: 1,
      now: Date.now,
      onFault: (error) => faults.push(error),
    });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(deleteBefore).toHaveBeenCalledTimes(5);
    deleteBefore.mockRejectedValueOnce(away);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(faults).toEqual([away]);
    retention.close();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(deleteBefore).toHaveBeenCalledTimes(10);
    vi.useRealTimers();
  });
});
