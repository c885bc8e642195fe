import { describe, expect, it } from "vitest";
import { chosenFrom } from "./chosen.js";
import { guard } from "./guard.js";

const GUARDS = ["admin: roles", "admin: etag", "state: single use", "links: no empty page"].map((name) =>
  guard(name, ["a", "b"], "readme"),
);
const namesOf = (chosen: ReturnType<typeof chosenFrom>) =>
  "problem" in chosen ? chosen.problem : chosen.map(({ name }) => name);

describe("chosenFrom()", () => {
  it("takes all guards without a name, and those that are named otherwise", () => {
    expect(chosenFrom(GUARDS, undefined)).toEqual(GUARDS);
    expect(namesOf(chosenFrom(GUARDS, ["state: single use", "admin: roles"]))).toEqual([
      "admin: roles",
      "state: single use",
    ]);
  });

  it.each([
    ["admin: role", 'No guard is called "admin: role". Near it: "admin: roles". --list shows them all.'],
    ["Single", 'No guard is called "Single". Near it: "state: single use". --list shows them all.'],
    ["", 'No guard is called "". --list shows them all.'],
  ])("says of %j that no guard has the name, and which are near", (name, problem) => {
    expect(namesOf(chosenFrom(GUARDS, ["admin: etag", name]))).toBe(problem);
  });
});
