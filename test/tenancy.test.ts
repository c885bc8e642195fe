import { describe, expect, it } from "vitest";
import { runTenancy } from "./stress/tenancy.js";
import { thin } from "./support/long.js";

describe("applications with equal user ids", () => {
  it.each(thin([150, 500]))("never get one another's token or answer: %i calls, 32 at once", async (calls) => {
    const size = { applications: 4, users: 4, providers: 3, calls, concurrency: 32, seed: 7 };
    const result = await runTenancy(size);
    expect(result.mismatches).toEqual([]);
    expect(result).toMatchObject({ connections: 60, calls });
    expect(result.strangers).toBeGreaterThan(calls / 100);
  });
});
