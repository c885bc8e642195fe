import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { StoredBlock, StoredCall } from "../../src/records/call-block.js";
import { CallWatch } from "../../src/records/call-watch.js";
import { blockForTest, storedCallForTest } from "./call-for-test.js";

let blocks: StoredBlock[];
let reads: number;
let failure: Error | undefined;
let faults: unknown[];
let unreadable: number[];
let watch: CallWatch;

beforeEach(() => {
  vi.useFakeTimers();
  blocks = [];
  reads = 0;
  failure = undefined;
  faults = [];
  unreadable = [];
  const read = async <T>(value: T): Promise<T> => {
    reads += 1;
    if (failure !== undefined) throw failure;
    return value;
  };
  watch = new CallWatch({
    calls: {
      lastSequence: () => read(blocks.at(-1)?.sequence ?? 0),
      listAfter: (sequence, limit) => read(blocks.filter((block) => block.sequence > sequence).slice(0, limit)),
    },
    onFault: (error) => faults.push(error),
    onUnreadable: ({ sequence }) => unreadable.push(sequence),
  });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Writes a block of calls with these statuses. */
function write(...statuses: readonly number[]) {
  const calls = statuses.map((status) => storedCallForTest("a", 1, { status }));
  blocks.push({ ...blockForTest("a", calls), sequence: blocks.length + 1 });
}

async function open(isWanted: (call: StoredCall) => boolean = () => true, whose = "alice") {
  const watcher = await watch.open(whose, isWanted);
  if (watcher === undefined) throw new Error("too many");
  return {
    close: () => watcher.close(),
    /** What comes within a quarter of a second. */
    async seen() {
      const [taken] = await Promise.all([watcher.take(250), vi.advanceTimersByTimeAsync(251)]);
      return taken && { statuses: taken.calls.map(({ status }) => status), skipped: taken.skipped };
    },
  };
}

const seen = (statuses: readonly number[], skipped = 0) => ({ statuses, skipped });

describe("CallWatch", () => {
  it("tells every watcher of what ends from then on, each of what it wants", async () => {
    write(1);
    const all = await open();
    const errors = await open(({ status }) => status >= 400);
    write(200, 404);
    expect(await all.seen()).toEqual(seen([200, 404]));
    expect(await errors.seen()).toEqual(seen([404]));
    write(201);
    expect(await all.seen()).toEqual(seen([201]));
    expect(await errors.seen()).toEqual(seen([]));
  });

  it("reads on until there is no more", async () => {
    const all = await open();
    for (let status = 0; status < 40; status += 1) write(status);
    await vi.advanceTimersByTimeAsync(251);
    expect((await all.seen())?.statuses).toHaveLength(40);
  });

  it("looks for nothing while nobody watches, and begins anew then", async () => {
    const first = await open();
    first.close();
    expect(await first.seen()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1000);
    const before = reads;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(reads).toBe(before);
    write(1);
    const second = await open();
    write(2);
    expect(await second.seen()).toEqual(seen([2]));
  });

  it("skips the oldest of those that nobody takes, and says how many", async () => {
    const slow = await open();
    write(...Array.from({ length: 1500 }, (_, status) => status));
    await vi.advanceTimersByTimeAsync(300);
    const taken = await slow.seen();
    expect([taken?.statuses[0], taken?.statuses.length, taken?.skipped]).toEqual([500, 1000, 500]);
  });

  it("takes in twenty watchers, ten of one operator", async () => {
    const watchers = await Promise.all(Array.from({ length: 10 }, () => open()));
    expect(await watch.open("alice", () => true)).toBeUndefined();
    watchers.push(...(await Promise.all(Array.from({ length: 10 }, () => open(undefined, "bob")))));
    expect(await watch.open("carol", () => true)).toBeUndefined();
    watchers[0]?.close();
    expect(await watch.open("carol", () => true)).toBeDefined();
  });

  it("goes on when the store is back, and reports it once", async () => {
    const all = await open();
    failure = new Error("away");
    write(1);
    await vi.advanceTimersByTimeAsync(2000);
    expect(faults).toEqual([failure]);
    failure = undefined;
    expect(await all.seen()).toEqual(seen([1]));
  });

  it("goes on behind a block that it cannot read, and reports it once", async () => {
    const all = await open();
    blocks.push({ ...blockForTest("a", [storedCallForTest("a", 1)]), sequence: 1, calls: "[]" });
    write(404);
    expect(await all.seen()).toEqual(seen([404]));
    await vi.advanceTimersByTimeAsync(2000);
    expect([unreadable, faults]).toEqual([[1], []]);
  });

  it("keeps no place for a watcher that could not begin", async () => {
    failure = new Error("away");
    for (let tries = 0; tries < 30; tries += 1) await expect(watch.open("alice", () => true)).rejects.toThrow("away");
    failure = undefined;
    expect(await watch.open("alice", () => true)).toBeDefined();
  });
});
