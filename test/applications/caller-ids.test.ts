import { describe, expect, it } from "vitest";
import { requireCallerIds } from "../../src/applications/caller.js";
import type { Call } from "../../src/call/call.js";

const check = (fields: Partial<Call>) => () => requireCallerIds({ publicKey: "k", userId: "u", ...fields } as Call);

describe("requireCallerIds()", () => {
  it.each<[Partial<Call>, string]>([
    [{ publicKey: "" }, "public_key is missing."],
    [{ userId: "" }, "user_id is missing."],
    [{ userId: "u".repeat(257) }, "user_id is longer than 256 characters."],
    // Two of them would be the same bytes in the store, and so the same user.
    [{ userId: "a\ud800" }, "user_id is not well-formed Unicode."],
    [{ publicKey: "\udc00a" }, "public_key is not well-formed Unicode."],
  ])("refuses %j", (fields, message) => {
    expect(check(fields)).toThrow(expect.objectContaining({ reason: "CALL_FORMAT_ERROR", message }));
  });

  it.each(["1", " 1", "é", "\u{1f600}", "a\0b", "u".repeat(256)])("takes the user id %j", (userId) => {
    expect(check({ userId })).not.toThrow();
  });
});
