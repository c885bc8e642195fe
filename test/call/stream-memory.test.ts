import { describe, expect, it } from "vitest";
import { downloadThroughRelay, MAX_ADDED_MIB } from "../stress/stream-memory.js";

describe("a large download", () => {
  it("passes through in constant memory", async () => {
    const { bytes, addedMib } = await downloadThroughRelay("raw", 256);
    expect(bytes).toBe(256 * 1024 * 1024);
    // Undefined where the system does not tell.
    expect(addedMib ?? 0).toBeLessThan(MAX_ADDED_MIB);
  });
});
