import { describe, expect, it } from "vitest";
import { callsFromBlock } from "../../src/records/call-block.js";
import { blockForTest, storedCallForTest } from "./call-for-test.js";

/** Around the room that a place has for a path. */
const LENGTHS = Array.from({ length: 40 }, (_, at) => 60 + at);

describe("callsFromBlock()", () => {
  it("reads every call as it was, of several kinds, with nothing but what each must have, and out of order", () => {
    const refused = {
      provider: undefined,
      method: undefined,
      origin: undefined,
      path: undefined,
      status: 404,
      errorType: "INVALID_PROVIDER",
      rule: undefined,
      cause: "ECONNREFUSED",
      tokenMs: undefined,
      queueMs: undefined,
      providerMs: undefined,
      isCaptured: true,
    };
    const calls = [
      storedCallForTest("a", 1_764_000_000_500),
      storedCallForTest("a", 1_764_000_000_400, refused),
      storedCallForTest("a", 1_764_000_000_700, { path: '/"\\\u2028\ud800é', queryKeys: ["q", '"'], tokenMs: 0 }),
      storedCallForTest("a", 1_764_000_000_600, refused),
      ...LENGTHS.map((length) => storedCallForTest("a", 1_764_000_000_600, { path: `/${"p".repeat(length)}` })),
      ...LENGTHS.map((length) => storedCallForTest("a", 1_764_000_000_600, { path: `/${"p".repeat(length)}é` })),
      ...LENGTHS.map((length) => storedCallForTest("a", 1_764_000_000_600, { path: `/${"p".repeat(length)}🦊p` })),
      storedCallForTest("a", 1_764_000_000_600, { totalMs: 86_399_999.9, responseBytes: 2 ** 40 }),
    ];
    const block = blockForTest("a", calls);
    expect(callsFromBlock(block)).toEqual(calls);
    expect(block).toMatchObject({
      count: 5 + 3 * LENGTHS.length,
      firstAt: 1_764_000_000_400,
      lastAt: 1_764_000_000_700,
    });
    expect(block.calls.split("INVALID_PROVIDER")).toHaveLength(2);
  });

  it("reads a block of another version, with a member that is not known here", () => {
    const call = storedCallForTest("a", 1_764_000_000_500);
    const { own, calls, ...text } = JSON.parse(blockForTest("a", [call]).calls);
    const other = {
      ...text,
      own: ["unknownToUs", ...own],
      calls: calls.map(([kind, ...each]: unknown[]) => [kind, "?", ...each]),
    };
    expect(callsFromBlock({ applicationId: "a", calls: JSON.stringify(other) })).toMatchObject([call]);
  });
});
