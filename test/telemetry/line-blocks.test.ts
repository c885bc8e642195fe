import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createLineBlocks } from "../../src/telemetry/line-blocks.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function blocksInto(written: string[]) {
  return createLineBlocks({ write: (text) => written.push(text), flushSync: () => written.push("flushed") });
}

describe("createLineBlocks()", () => {
  it("writes lines together after a tenth of a second, in their order", () => {
    const written: string[] = [];
    const blocks = blocksInto(written);
    blocks.write("a\n");
    vi.advanceTimersByTime(60);
    blocks.write("b\n");
    vi.advanceTimersByTime(39);
    expect(written).toEqual([]);
    vi.advanceTimersByTime(1);
    blocks.write("c\n");
    vi.advanceTimersByTime(100);
    expect(written).toEqual(["a\nb\n", "c\n"]);
  });

  it("writes a block at once when it is long", () => {
    const written: string[] = [];
    const blocks = blocksInto(written);
    for (let at = 0; at < 16; at++) blocks.write(`${"x".repeat(1023)}\n`);
    expect(written.map((text) => text.length)).toEqual([16 * 1024]);
    vi.advanceTimersByTime(1000);
    expect(written.length).toBe(1);
  });

  it("writes what waits when it is flushed, and nothing twice", () => {
    const written: string[] = [];
    const blocks = blocksInto(written);
    blocks.write("a\n");
    blocks.flushSync();
    vi.advanceTimersByTime(1000);
    expect(written).toEqual(["a\n", "flushed"]);
  });
});
