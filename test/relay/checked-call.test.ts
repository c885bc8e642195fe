import { describe, expect, it } from "vitest";
import type { Call } from "../../src/relay/call.js";
import { requireCallFields } from "../../src/relay/checked-call.js";

const check = (fields: Partial<Call>) => () => requireCallFields({ publicKey: "k", userId: "u", ...fields } as Call);

describe("requireCallFields()", () => {
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
