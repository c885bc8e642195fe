import { inspect, isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { createAttachments } from "../../src/lib/attachments.js";

describe("createAttachments()", () => {
  it("gives what was attached to this very object, also a frozen one", () => {
    const attachments = createAttachments<object, string>();
    const [owner, other] = [Object.freeze({ id: "1" }), { id: "1" }];
    attachments.set(owner, "value");
    expect([attachments.get(owner), attachments.get(other), attachments.get({ ...owner })]).toEqual([
      "value",
      undefined,
      undefined,
    ]);
  });

  it("keeps apart what different parts attach", () => {
    const [first, second] = [createAttachments<object, string>(), createAttachments<object, string>()];
    const owner = {};
    first.set(owner, "first");
    expect(second.get(owner)).toBeUndefined();
    second.set(owner, "second");
    expect([first.get(owner), second.get(owner)]).toEqual(["first", "second"]);
  });

  it("shows nothing of it to whoever prints, copies or compares the object", () => {
    const owner = { id: "1" };
    createAttachments<object, string>().set(owner, "CANARY");
    const shown = [inspect(owner, { showHidden: true }), JSON.stringify(owner), inspect(structuredClone(owner))];
    expect(shown.join()).not.toContain("CANARY");
    expect(Reflect.ownKeys(owner)).toEqual(["id"]);
    expect(isDeepStrictEqual(owner, { id: "1" })).toBe(true);
  });
});
