import { describe, expect, it } from "vitest";
import { createStreamGarbage } from "../../src/call/budget.js";
import { createYoungCollection } from "../../src/lib/process.js";

const KIB = 1024;

describe("createStreamGarbage()", () => {
  it("has it collected each time that eight megabytes were handed on", () => {
    let collections = 0;
    const garbage = createStreamGarbage(() => {
      collections += 1;
    });
    for (let piece = 0; piece < 127; piece += 1) garbage.add(64 * KIB);
    expect(collections).toBe(0);
    garbage.add(64 * KIB);
    expect(collections).toBe(1);
    for (let piece = 0; piece < 256; piece += 1) garbage.add(64 * KIB);
    expect(collections).toBe(3);
  });
});

describe("createYoungCollection()", () => {
  it("frees young buffers that nobody holds, and gives nobody else the means", () => {
    const collect = createYoungCollection();
    collect();
    let held = Array.from({ length: 64 }, () => Buffer.allocUnsafeSlow(64 * KIB));
    const made = process.memoryUsage().arrayBuffers;
    held = [];
    // V8 frees buffers on another thread, and has done so when the next collection begins.
    collect();
    collect();
    expect(made - process.memoryUsage().arrayBuffers).toBeGreaterThanOrEqual(60 * 64 * KIB);
    expect(held).toEqual([]);
    expect("gc" in globalThis).toBe(false);
  });
});
