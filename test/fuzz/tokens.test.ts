import { describe, expect, it } from "vitest";
import { isInside, methodsReadFrom, readingsOf } from "./path-readings.js";
import { fuzzTokens } from "./tokens.js";

describe("fuzzTokens()", () => {
  it("finds nothing in some hundred tokens and paths", async () => {
    const { tried, findings } = await fuzzTokens({ count: 800, seed: 2026 });
    expect(findings).toEqual([]);
    expect(tried).toBeGreaterThanOrEqual(800);
  });
});

describe("the readings of a target", () => {
  it.each([
    ["/a/..%2fsecret", "/secret"],
    ["/a/%252e%252e/secret", "/secret"],
    ["/a/..;x=1/secret", "/secret"],
    ["/a;b/c", "/a"],
    ["/a/b%00/c", "/a/b"],
    ["/a/%c0%ae%c0%ae/b", "/b"],
    ["/a/%EF%BC%8Fb", "/a/b"],
    ["/a/..\\b", "/b"],
  ])("of %s have %s", (path, reading) => expect(readingsOf(path)).toContain(reading));

  it("tell which methods a query may name", () => {
    expect([...methodsReadFrom("a=1;%5fmethod[]=+delete&method=list")]).toEqual(["DELETE"]);
  });

  it("are inside of a pattern or not", () => {
    expect(isInside("/a/**", "/a")).toBe(true);
    expect(isInside("/a/*/c", "/a/b/c")).toBe(true);
    expect(isInside("/a/*", "/a/b/c")).toBe(false);
  });
});
