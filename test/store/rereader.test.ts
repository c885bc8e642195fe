import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLookupCache } from "../../src/store/lookup-cache.js";

interface Row {
  readonly id: string;
  readonly version: number;
}

/** A table, and every statement that was sent to it; `hold()` lets the next answers of `findByIds` wait. */
function setUp() {
  const rows = new Map<string, Row>();
  const single: string[] = [];
  const batches: string[][] = [];
  let gate: Promise<unknown> = Promise.resolve();
  const cache = createLookupCache<Row>({
    async findByIds(ids) {
      batches.push([...ids]);
      const found = ids.flatMap((id) => rows.get(id) ?? []).reverse();
      await gate;
      return found;
    },
  });
  const read = (id: string) => async () => {
    single.push(id);
    return rows.get(id);
  };
  const put = (id: string, version: number) => void rows.set(id, { id, version });
  return {
    rows,
    single,
    batches,
    cache,
    put,
    find: async (id: string) => (await cache.find(id, read(id)))?.version,
    hold(until: Promise<unknown>) {
      gate = until;
    },
  };
}

type Table = ReturnType<typeof setUp>;

/** Read once, and asked for again. */
async function use({ put, find }: Table, ...ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    put(id, 1);
    await find(id);
    await find(id);
  }
}

/** An answer that comes when the test says so. */
function pending() {
  let settle = (): void => {};
  let fail = (_error: Error): void => {};
  const promise = new Promise<void>((resolve, reject) => {
    settle = resolve;
    fail = reject;
  });
  promise.catch(() => {});
  return { promise, settle, fail };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("createRereader()", () => {
  it("reads what was used again before it is too old, all in one statement, and nobody waits", async () => {
    const table = setUp();
    await use(table, "a", "b", "c");
    for (const id of ["a", "b", "c"]) table.put(id, 2);
    await pass(800);
    expect(table.batches).toEqual([["a", "b", "c"]]);
    expect([await table.find("a"), await table.find("b"), await table.find("c")]).toEqual([2, 2, 2]);
    await pass(700);
    await table.find("a");
    expect(table.single).toEqual(["a", "b", "c"]);
  });

  it("gives the very object out again when nothing about it has changed", async () => {
    const table = setUp();
    await use(table, "a");
    const found = () => table.cache.find("a", () => Promise.reject(new Error("read by itself")));
    const before = await found();
    table.put("a", 1);
    await pass(800);
    expect(table.batches).toHaveLength(1);
    expect(await found()).toBe(before);
  });

  it("never gives out what is a second old, however often it was read again", async () => {
    const table = setUp();
    await use(table, "a");
    const late = pending();
    table.hold(late.promise);
    await pass(600);
    table.put("a", 2);
    for (let ms = 0; ms < 390; ms += 10) expect(await table.find("a").finally(() => pass(10))).toBe(1);
    await pass(10);
    expect(await table.find("a")).toBe(2);
    expect(table.single).toEqual(["a", "a"]);
    late.settle();
  });

  it("counts the age of what it read from when it asked", async () => {
    const table = setUp();
    await use(table, "a");
    const late = pending();
    table.hold(late.promise);
    await pass(600);
    expect(table.batches).toHaveLength(1);
    await pass(350);
    late.settle();
    await pass(0);
    // Not read again: only the one answer decides how long it is given out.
    await pass(640);
    expect(await table.find("a")).toBe(1);
    expect(table.single).toEqual(["a"]);
    table.put("a", 2);
    await pass(10);
    expect(await table.find("a")).toBe(2);
  });

  it("lets what is not used grow old, and rests when nothing else is left", async () => {
    const table = setUp();
    table.put("a", 1);
    await table.find("a");
    await pass(1400);
    expect(table.batches).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
    await table.find("a");
    expect(vi.getTimerCount()).toBe(1);
  });

  it("reads a value that nobody asks for any more once", async () => {
    const table = setUp();
    await use(table, "a");
    await pass(10_000);
    expect(table.batches).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("forgets what is gone: whoever asks next reads for itself", async () => {
    const table = setUp();
    await use(table, "a");
    table.rows.delete("a");
    await pass(800);
    expect(await table.find("a")).toBeUndefined();
    expect(table.single).toEqual(["a", "a"]);
  });

  it("keeps nothing that it asked for before this process changed it", async () => {
    const table = setUp();
    await use(table, "a", "b");
    const late = pending();
    table.hold(late.promise);
    await pass(600);
    expect(table.batches).toHaveLength(1);
    table.put("a", 2);
    table.cache.forget("a");
    table.rows.delete("b");
    table.cache.forget("b");
    expect(await table.find("a")).toBe(2);
    late.settle();
    await pass(0);
    expect([await table.find("a"), await table.find("b")]).toEqual([2, undefined]);
    expect(table.single).toEqual(["a", "b", "a", "b"]);
  });

  it("leaves callers to read for themselves when it fails, and tries again what they use", async () => {
    const table = setUp();
    await use(table, "a");
    const away = pending();
    table.hold(away.promise);
    away.fail(new Error("away"));
    await pass(600);
    expect(await table.find("a")).toBe(1);
    expect(table.single).toEqual(["a"]);
    await pass(400);
    expect(await table.find("a")).toBe(1);
    expect(table.single).toEqual(["a", "a"]);
    expect(table.batches).toEqual([["a"], ["a"]]);
    table.hold(Promise.resolve());
    await table.find("a");
    await pass(800);
    expect(table.batches).toHaveLength(3);
  });

  it("asks for so many in one statement, one after the other", async () => {
    const table = setUp();
    await use(table, ...Array.from({ length: 600 }, (_, at) => `${at}`));
    const late = pending();
    table.hold(late.promise);
    await pass(600);
    expect(table.batches.map(({ length }) => length)).toEqual([250]);
    late.settle();
    await pass(0);
    expect(table.batches.map(({ length }) => length)).toEqual([250, 250, 100]);
  });

  it("begins nothing after it is closed, neither a round nor the next statement of one", async () => {
    const table = setUp();
    await use(table, ...Array.from({ length: 300 }, (_, at) => `${at}`));
    const late = pending();
    table.hold(late.promise);
    await pass(600);
    table.cache.close();
    late.settle();
    await pass(0);
    expect(table.batches).toHaveLength(1);
    await use(table, "new");
    expect(vi.getTimerCount()).toBe(0);
  });
});
