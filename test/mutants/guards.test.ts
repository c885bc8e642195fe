import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { withoutGuard } from "./guard.js";
import { GUARDS } from "./guards.js";

const textOf = (file: string) => readFileSync(new URL(`../../src/${file}`, import.meta.url), "utf8");

describe("the guards", () => {
  it("each find their text exactly once in the source as it is now", () => {
    const lost = GUARDS.filter((guard) => withoutGuard(textOf(guard.file), guard) === undefined);
    expect(lost.map(({ name, file, find }) => ({ name, file, find }))).toEqual([]);
  });

  it("each have a name of their own", () => {
    const names = GUARDS.map(({ name }) => name);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });
});
