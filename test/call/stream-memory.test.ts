import { describe, expect, it } from "vitest";
import { MAX_ADDED_MIB, transferThroughRelay } from "../stress/stream-memory.js";

describe("a large body", () => {
  it.each(["raw", "via upload"] as const)("passes through in constant memory: %s", async (way) => {
    const { bytes, addedMib } = await transferThroughRelay(way, 256);
    expect(bytes).toBe(256 * 1024 * 1024);
    // Undefined where the system does not tell.
    expect(addedMib ?? 0).toBeLessThan(MAX_ADDED_MIB[way]);
  });
});
