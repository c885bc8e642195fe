import { describe, expect, it } from "vitest";
import { createPreparedContent } from "../support/prepared-content.js";

describe("createPreparedContent()", () => {
  const prepared = createPreparedContent();

  it("makes one JSON object of exactly every size", () => {
    const sizes = [...Array.from({ length: 400 }, (_, i) => i + 2), 1024, 102_400, 10 * 1024 * 1024];
    for (const size of sizes) {
      const json = prepared.json(size);
      expect(json.length).toBe(size);
      expect(JSON.parse(json.toString())).toBeTypeOf("object");
    }
  });

  it("hands out the same buffer again", () => {
    // Compared here and not by expect(), which would print both buffers when they differ.
    const first = prepared.json(1024);
    expect(prepared.json(1024) === first).toBe(true);
  });

  it("forgets the oldest beyond its bound, and still answers", () => {
    const first = prepared.json(20_000_000);
    for (const size of [20_000_001, 20_000_002, 20_000_003]) prepared.json(size);
    const again = prepared.json(20_000_000);
    expect([again === first, again.equals(first)]).toEqual([false, true]);
  });

  it("makes bytes of every value whose shorter forms are prefixes", () => {
    const short = Buffer.from(prepared.bytes(1000));
    expect(prepared.bytes(100_000).subarray(0, 1000).equals(short)).toBe(true);
    expect(createPreparedContent().bytes(1000).equals(short)).toBe(true);
    expect(new Set(prepared.bytes(100_000)).size).toBe(256);
  });
});
