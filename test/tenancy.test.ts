import { describe, expect, it } from "vitest";
import { runTenancy } from "./stress/tenancy.js";

describe("applications with equal user ids", () => {
  it("never get one another's token or answer: 500 calls, 32 at once", async () => {
    const size = { applications: 4, users: 4, providers: 3, calls: 500, concurrency: 32, seed: 7 };
    const result = await runTenancy(size);
    expect(result.mismatches).toEqual([]);
    expect(result).toMatchObject({ connections: 60, calls: 500 });
    expect(result.strangers).toBeGreaterThan(5);
  });
});
