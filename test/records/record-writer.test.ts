import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CallBlock } from "../../src/records/call-block.js";
import { createRecordWriter, type RecordWriter } from "../../src/records/record-writer.js";
import { storedCallForTest } from "./call-for-test.js";

/** A store that answers when it is told to. */
function slowStore() {
  const written: CallBlock[][] = [];
  const answers: Array<(error?: Error) => void> = [];
  let isSlow = false;
  return {
    written,
    answers,
    slowDown: () => {
      isSlow = true;
    },
    append: (blocks: readonly CallBlock[]) =>
      new Promise<number>((resolve, reject) => {
        written.push([...blocks]);
        const answer = (error?: Error) => (error === undefined ? resolve(1) : reject(error));
        if (isSlow) answers.push(answer);
        else answer();
      }),
  };
}

let store: ReturnType<typeof slowStore>;
let drops: Array<{ count: number; cause: unknown }>;
let writer: RecordWriter;

function start(maxCalls = 10_000) {
  writer = createRecordWriter({
    calls: store,
    maxCalls,
    onDropped: (count, cause) => drops.push({ count, cause }),
  });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  store = slowStore();
  drops = [];
  start();
});
afterEach(() => {
  vi.useRealTimers();
});

function add(count: number, applicationId = "a") {
  for (let index = 0; index < count; index += 1) writer.add(storedCallForTest(applicationId, index));
}
/** Time passes, and then as many turns of the event loop as any write takes. */
async function pass(ms: number) {
  await vi.advanceTimersByTimeAsync(ms);
  for (let turn = 0; turn < 30; turn += 1) {
    await nextTurn();
    await vi.advanceTimersByTimeAsync(0);
  }
}

const countsOf = () => store.written.map((blocks) => blocks.map(({ count }) => count));

describe("createRecordWriter()", () => {
  it("writes half a second after the first call, one block for each application", async () => {
    add(2);
    add(3, "b");
    await pass(499);
    expect(store.written).toEqual([]);
    await pass(1);
    expect(store.written[0]).toMatchObject([
      { applicationId: "a", count: 2 },
      { applicationId: "b", count: 3 },
    ]);
    add(1);
    await pass(500);
    expect(countsOf()).toEqual([[2, 3], [1]]);
  });

  it("writes at once when a batch is full, and never more than a batch in one transaction", async () => {
    add(1200);
    expect(store.written).toEqual([]);
    await pass(1);
    expect(countsOf()).toEqual([[500], [500], [200]]);
  });

  it("makes blocks that are a small part of a small ring", async () => {
    start(100);
    add(25);
    await pass(500);
    expect(countsOf()).toEqual([[10], [10], [5]]);
  });

  it("drops what a slow store has no time for, keeps what it has promised, and says so once a minute", async () => {
    store.slowDown();
    add(500);
    await pass(1);
    add(5000);
    expect([writer.dropped, drops]).toEqual([0, []]);
    add(7);
    expect(writer.dropped).toBe(7);
    expect(drops).toEqual([{ count: 1, cause: undefined }]);
    expect(store.written).toHaveLength(1);
    await pass(60_000);
    expect(drops.slice(1)).toEqual([{ count: 6, cause: undefined }]);
    for (let batch = 0; batch < 11; batch += 1) {
      store.answers.shift()?.();
      await pass(1);
    }
    expect(
      countsOf()
        .flat()
        .reduce((sum, count) => sum + count, 0),
    ).toBe(5500);
  });

  it("drops what a store does not take, and goes on", async () => {
    const away = new Error("away");
    store.slowDown();
    add(3);
    await pass(500);
    store.answers.shift()?.(away);
    await pass(1);
    expect(drops).toEqual([{ count: 3, cause: away }]);
    add(2);
    await pass(500);
    expect(countsOf()).toEqual([[3], [2]]);
  });

  it("writes what waits when it is closed, also behind a write that is under way", async () => {
    store.slowDown();
    add(500);
    await pass(1);
    add(20);
    const closed = writer.close();
    store.answers.shift()?.();
    await pass(1);
    store.answers.shift()?.();
    await closed;
    expect([countsOf(), writer.dropped]).toEqual([[[500], [20]], 0]);
  });

  it("waits two seconds for a store that does not answer, and counts what is lost", async () => {
    store.slowDown();
    add(500);
    await pass(1);
    add(20);
    const closed = writer.close();
    await pass(2000);
    await closed;
    expect([writer.dropped, drops]).toEqual([20, [{ count: 20, cause: undefined }]]);
  });
});
