import { expect, it } from "vitest";
import { readBlocks } from "../../src/records/list-calls.js";
import { blockForTest, storedCallForTest } from "./call-for-test.js";

it("reads blocks in order, and gives others their turn between large ones", async () => {
  const path = `/${"p".repeat(1023)}`;
  const sizes = [1, 300, 300, 300, 1, 1];
  const blocks = sizes.map((size, at) => {
    const calls = Array.from({ length: size }, () => storedCallForTest("a", 1, { path }));
    return { ...blockForTest("a", calls), sequence: at };
  });
  let turns = 0;
  const count = () => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const seen: Array<readonly number[]> = [];
  for await (const [{ sequence }, calls] of readBlocks(blocks)) seen.push([sequence, calls.length, turns]);
  clearImmediate(counting);
  expect(seen.map(([sequence, length]) => [sequence, length])).toEqual(sizes.map((size, at) => [at, size]));
  expect(new Set(seen.slice(1, 4).map(([, , turn]) => turn)).size).toBe(3);
  // The small ones go with those before them, or take one turn.
  expect(turns).toBeLessThanOrEqual(5);
});
