import { describe, expect, it } from "vitest";
import { REPOSITORY } from "./copy.js";
import { readSources, withoutGuard } from "./guard.js";
import { GUARDS } from "./guards.js";

describe("the guards", () => {
  it("each find their text exactly once in the source as it is now", () => {
    const sources = readSources(REPOSITORY);
    const lost = GUARDS.filter((guard) => withoutGuard(sources, guard) === undefined);
    expect(lost.map(({ name, find }) => ({ name, find }))).toEqual([]);
  });

  it("each have a name of their own", () => {
    const names = GUARDS.map(({ name }) => name);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });
});
