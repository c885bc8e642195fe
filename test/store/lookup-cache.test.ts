import { describe, expect, it } from "vitest";
import { createBatch, createLookupCache } from "../../src/store/lookup-cache.js";

interface Value {
  readonly id: string;
  readonly text?: string;
  readonly token?: Buffer;
}

const none = async () => [];

/** A cache whose time the test sets, over a value that the test changes. */
function setUp() {
  const state = { now: 0, id: "first" as string | undefined, reads: 0 };
  const cache = createLookupCache<Value>({ findByIds: none, now: () => state.now });
  const read = async () => {
    state.reads += 1;
    return state.id === undefined ? undefined : { id: state.id };
  };
  return { state, cache, find: async (key = "k") => (await cache.find(key, read))?.id };
}

describe("createBatch()", () => {
  it("reads together what is asked for in one turn, and tells all of them that it failed", async () => {
    const batches: string[][] = [];
    const find = createBatch(async (keys: string[]) => {
      batches.push(keys);
      if (keys.includes("away")) throw new Error("away");
      return keys.map((key) => (key === "nobody" ? undefined : `of ${key}`));
    });
    expect(await Promise.all(["a", "nobody", "b"].map(find))).toEqual(["of a", undefined, "of b"]);
    const failed = await Promise.allSettled(["a", "away"].map(find));
    expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await find("c")).toBe("of c");
    expect(batches).toEqual([["a", "nobody", "b"], ["a", "away"], ["c"]]);
  });
});

describe("createLookupCache()", () => {
  it("keeps a value for less than a second from when it was asked for", async () => {
    const { state, find } = setUp();
    await find();
    state.id = "second";
    state.now = 999;
    expect(await find()).toBe("first");
    state.now = 1000;
    expect(await find()).toBe("second");
    expect(state.reads).toBe(2);
  });

  it("gives the same object again while nothing about it has changed", async () => {
    let now = 0;
    const cache = createLookupCache<Value>({ findByIds: none, now: () => now });
    const find = (version: number) =>
      cache.find("k", async () => ({ id: `v${version}`, token: Buffer.from("sealed") }));
    const first = await find(1);
    now = 1000;
    expect(await find(1)).toBe(first);
    now = 2000;
    expect(await find(2)).toEqual({ id: "v2", token: Buffer.from("sealed") });
    cache.forget("k");
    expect(await find(1)).not.toBe(first);
  });

  it("reads once for all who ask at the same time", async () => {
    const { state, find } = setUp();
    expect(await Promise.all([find(), find(), find("other")])).toEqual(["first", "first", "first"]);
    expect(state.reads).toBe(2);
  });

  it("counts the second from the question, not from the answer", async () => {
    const { state, cache } = setUp();
    const slow = cache.find("k", async () => {
      state.now = 5000;
      return { id: "late" };
    });
    expect(await slow).toEqual({ id: "late" });
    expect(await cache.find("k", async () => ({ id: "new" }))).toEqual({ id: "new" });
  });

  it("does not keep that there is none, nor a failure", async () => {
    const { state, cache, find } = setUp();
    state.id = undefined;
    expect(await find()).toBeUndefined();
    state.id = "first";
    expect(await find()).toBe("first");
    await expect(cache.find("x", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
    expect(await cache.find("x", async () => ({ id: "back" }))).toEqual({ id: "back" });
  });

  it("forgets what this process changed, also what is being read meanwhile", async () => {
    const { state, cache, find } = setUp();
    await find();
    state.id = "second";
    cache.forget("k");
    expect(await find()).toBe("second");
    let answer: (value: Value) => void = () => {};
    cache.forget("k");
    const reading = cache.find("k", () => new Promise<Value>((resolve) => (answer = resolve)));
    cache.forget("k");
    answer({ id: "before the change" });
    await reading;
    expect(await find()).toBe("second");
  });

  it("holds so many and no more; the one read longest ago makes room", async () => {
    const { state, find } = setUp();
    for (let key = 0; key <= 5000; key += 1) await find(`${key}`);
    const { reads } = state;
    await find("5000");
    expect(state.reads).toBe(reads);
    await find("0");
    expect(state.reads).toBe(reads + 1);
  });
});
