import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { describeError } from "../../src/telemetry/log.js";

describe("describeError()", () => {
  it("keeps class, code and place, and nothing that an error quotes", () => {
    const cause = new Error("CANARY in a cause");
    const error = Object.assign(new TypeError("CANARY in a message", { cause }), {
      code: "ERR_X",
      headers: { authorization: "Bearer CANARY" },
    });
    const described = describeError(error);
    expect(described).toEqual({ class: "TypeError", code: "ERR_X", at: expect.stringMatching(/^at .*log\.test\.ts/) });
    expect(inspect(described, { depth: 9 })).not.toContain("CANARY");
  });

  it.each([["text"], [undefined], [{ code: 1 }]])("says of %j only what it is", (thrown) => {
    expect(describeError(thrown)).toEqual({ class: typeof thrown, code: undefined, at: undefined });
  });

  it("takes no code that is not text", () => {
    expect(describeError(Object.assign(new Error("x"), { code: { secret: "CANARY" } })).code).toBeUndefined();
  });
});
