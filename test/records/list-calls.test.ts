import { describe, expect, it } from "vitest";
import type { BlockFilter, StoredBlock } from "../../src/records/call-block.js";
import { type CallFilter, type CallPosition, listCalls } from "../../src/records/list-calls.js";
import { blockForTest, storedCallForTest } from "./call-for-test.js";

const ANY: CallFilter = { applicationId: undefined, providers: undefined, errorType: undefined };

/** Blocks of these sizes, oldest first; the status of a call is its number. */
function storeOf(...counts: readonly number[]) {
  let number = 0;
  const blocks = counts.map((count, at): StoredBlock => {
    const calls = Array.from({ length: count }, () => {
      number += 1;
      const errorType = number % 3 === 0 ? "API_ERROR" : undefined;
      const provider = number % 2 === 0 ? "slack" : "github";
      return storedCallForTest("a", number, { status: number, errorType, provider });
    });
    return { ...blockForTest("a", calls), sequence: at + 1 };
  });
  return {
    list: async ({ beforeSequence = Number.POSITIVE_INFINITY, limit }: BlockFilter) =>
      blocks
        .toReversed()
        .filter(({ sequence }) => sequence < beforeSequence)
        .slice(0, limit),
  };
}

async function pagesOf(store: ReturnType<typeof storeOf>, pageSize: number, filter = ANY): Promise<number[][]> {
  const pages: number[][] = [];
  let from: CallPosition | undefined;
  do {
    const page = await listCalls(store, filter, { pageSize, from });
    pages.push(page.calls.map(({ status }) => status));
    from = page.next;
  } while (from !== undefined);
  return pages;
}

const numbers = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, index) => from - index);

describe("listCalls()", () => {
  it.each([1, 2, 3, 5, 100])("gives every call once, newest first, in pages of %i", async (pageSize) => {
    const pages = await pagesOf(storeOf(1, 3, 2, 1, 4), pageSize);
    expect(pages.flat()).toEqual(numbers(11, 1));
    for (const page of pages.slice(0, -1)) expect(page).toHaveLength(pageSize);
  });

  it("goes on behind the blocks it reads at a time", async () => {
    const store = storeOf(...Array.from({ length: 50 }, () => 1));
    expect((await pagesOf(store, 100)).flat()).toEqual(numbers(50, 1));
    expect((await pagesOf(store, 16)).flat()).toEqual(numbers(50, 1));
  });

  it("gives what a filter names", async () => {
    const store = storeOf(5, 5, 5);
    expect(await pagesOf(store, 10, { ...ANY, errorType: "API_ERROR" })).toEqual([[15, 12, 9, 6, 3]]);
    expect(await pagesOf(store, 10, { ...ANY, errorType: "API_ERROR", providers: ["slack"] })).toEqual([[12, 6]]);
  });

  it("ends a page that would take too long, and tells where to go on", async () => {
    const store = storeOf(...Array.from({ length: 60 }, () => 500));
    const pages = await pagesOf(store, 10, { ...ANY, providers: ["nobody"] });
    expect(pages).toEqual([[], []]);
  });
});
