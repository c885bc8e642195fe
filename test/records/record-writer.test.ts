import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CallBlock, callsFromBlock } from "../../src/records/call-block.js";
import { RecordWriter } from "../../src/records/record-writer.js";
import { sealerForTest } from "../oauth/sealer-for-test.js";
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
  writer = new RecordWriter({
    calls: store,
    sealer: sealerForTest(),
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

/** Of three kilobytes. */
const LARGE = {
  path: `/${"p".repeat(1023)}`,
  queryKeys: Array.from({ length: 32 }, (_, at) => `${at}`.padEnd(64, "q")),
};

function add(count: number, applicationId = "a", patch = {}) {
  for (let index = 0; index < count; index += 1)
    writer.add({ ...storedCallForTest(applicationId, index, patch), userId: "ada" });
}
/** Time passes, and then as many turns of the event loop as any write takes. */
async function pass(ms: number) {
  await vi.advanceTimersByTimeAsync(ms);
  for (let turn = 0; turn < 30; turn += 1) {
    await nextTurn();
    await vi.advanceTimersByTimeAsync(0);
  }
}

const totalOf = (applicationId: string) =>
  store.written
    .flat()
    .filter((block) => block.applicationId === applicationId)
    .reduce((sum, { count }) => sum + count, 0);
const countsOf = () => store.written.map((blocks) => blocks.map(({ count }) => count));

describe("RecordWriter", () => {
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

  it("waits two seconds when many come, and never writes more than a batch in one transaction", async () => {
    add(1200);
    await pass(1999);
    expect(store.written).toEqual([]);
    await pass(1);
    expect(countsOf()).toEqual([[500], [500], [200]]);
    add(1);
    await pass(500);
    expect(countsOf().at(-1)).toEqual([1]);
  });

  it("does not write what would have left its ring again", async () => {
    start(100);
    add(998);
    add(3, "b");
    await pass(2000);
    expect(totalOf("a")).toBe(100);
    expect(store.written.flat().findLast(({ applicationId }) => applicationId === "a")?.lastAt).toBe(997);
    expect([totalOf("b"), writer.dropped]).toEqual([3, 0]);
  });

  it("writes nothing of a long path in the place of a short one", async () => {
    start(10);
    add(15, "a", LARGE);
    add(7);
    await pass(500);
    const paths = store.written.flat().flatMap((block) => callsFromBlock(block).map(({ path }) => path));
    expect(paths).toEqual([LARGE.path, LARGE.path, LARGE.path, ...Array.from({ length: 7 }, () => "/user")]);
  });

  it("puts calls of many applications into one transaction, and large ones into several", async () => {
    for (let index = 0; index < 600; index += 1) add(1, `application-${index}`);
    await pass(2000);
    expect(countsOf()).toHaveLength(3);
    expect(countsOf().flat()).toEqual(Array.from({ length: 600 }, () => 1));
    store.written.splice(0);
    add(300, "a", LARGE);
    await pass(500);
    expect(store.written.length).toBeGreaterThan(3);
    for (const [block] of store.written) expect(block?.calls.length).toBeLessThan(140_000);
    expect(totalOf("a")).toBe(300);
  });

  it("makes blocks that are a small part of a small ring", async () => {
    start(100);
    add(25);
    await pass(500);
    expect(countsOf()).toEqual([[10], [10], [5]]);
  });

  it("drops what a slow store has no time for, keeps what it has promised, and says so once a minute", async () => {
    start(1_000_000);
    store.slowDown();
    let promised = 0;
    for (; writer.dropped === 0; promised += 1) add(1, "a", LARGE);
    promised -= 1;
    add(6, "a", LARGE);
    expect(writer.dropped).toBe(7);
    expect(drops).toEqual([{ count: 1, cause: undefined }]);
    // Without a wait, since so much waits.
    await pass(0);
    expect(store.written).toHaveLength(1);
    await pass(60_000);
    expect(drops.slice(1)).toEqual([{ count: 6, cause: undefined }]);
    for (; store.answers.length > 0; await pass(1)) store.answers.shift()?.();
    expect(totalOf("a")).toBe(promised);
    add(1, "a", LARGE);
    expect(writer.dropped).toBe(7);
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
    await pass(500);
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
    await pass(500);
    add(20);
    const closed = writer.close();
    await pass(2000);
    await closed;
    expect([writer.dropped, drops]).toEqual([20, [{ count: 20, cause: undefined }]]);
  });
});
