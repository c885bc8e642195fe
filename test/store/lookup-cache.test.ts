import { describe, expect, it } from "vitest";
import { createLookupCache } from "../../src/store/lookup-cache.js";

/** A cache whose time the test sets, over a value that the test changes. */
function setUp() {
  const state = { now: 0, value: "first" as string | undefined, reads: 0 };
  const cache = createLookupCache<string>(() => state.now);
  const read = async () => {
    state.reads += 1;
    return state.value;
  };
  return { state, cache, find: (key = "k") => cache.find(key, read) };
}

describe("createLookupCache()", () => {
  it("keeps a value for less than a second from when it was asked for", async () => {
    const { state, find } = setUp();
    await find();
    state.value = "second";
    state.now = 999;
    expect(await find()).toBe("first");
    state.now = 1000;
    expect(await find()).toBe("second");
    expect(state.reads).toBe(2);
  });

  it("gives the same object again while nothing about it has changed", async () => {
    let now = 0;
    const cache = createLookupCache<{ token: Buffer; version: number }>(() => now);
    const find = (version: number) => cache.find("k", async () => ({ token: Buffer.from("sealed"), version }));
    const first = await find(1);
    now = 1000;
    expect(await find(1)).toBe(first);
    now = 2000;
    expect(await find(2)).toEqual({ token: Buffer.from("sealed"), version: 2 });
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
      return "late";
    });
    expect(await slow).toBe("late");
    expect(await cache.find("k", async () => "new")).toBe("new");
  });

  it("does not keep that there is none, nor a failure", async () => {
    const { state, cache, find } = setUp();
    state.value = undefined;
    expect(await find()).toBeUndefined();
    state.value = "first";
    expect(await find()).toBe("first");
    await expect(cache.find("x", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
    expect(await cache.find("x", async () => "back")).toBe("back");
  });

  it("forgets what this process changed, also what is being read meanwhile", async () => {
    const { state, cache, find } = setUp();
    await find();
    state.value = "second";
    cache.forget("k");
    expect(await find()).toBe("second");
    let answer: (value: string) => void = () => {};
    cache.forget("k");
    const reading = cache.find("k", () => new Promise<string>((resolve) => (answer = resolve)));
    cache.forget("k");
    answer("before the change");
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
