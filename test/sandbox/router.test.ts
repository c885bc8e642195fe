import { describe, expect, it } from "vitest";
import { createRouter, jsonAnswer, parseTarget } from "../../src/sandbox/router.js";

describe("parseTarget()", () => {
  it.each([
    ["/a?b=c?d", "/a", "b=c%3Fd"],
    ["/a#b", "/a#b", ""],
    ["//evil.test/a", "//evil.test/a", ""],
    ["/a/../b", "/a/../b", ""],
    ["http://h:99999/a?x=1", "/a", "x=1"],
    ["HTTPS://h?x=1", "/", "x=1"],
    ["*", "*", ""],
    ["", "/", ""],
    ["?x", "/", "x="],
  ])("takes %j apart", (target, path, query) => {
    const parsed = parseTarget(target);
    expect([parsed.path, parsed.query.toString()]).toEqual([path, query]);
  });
});

describe("createRouter()", () => {
  const handle = () => jsonAnswer("{}");
  const find = createRouter(["/a", "/a/b", "/t/*"].map((path) => ({ path, methods: "ANY" as const, handle })));

  it.each([
    ["/a", "/a"],
    ["/a/b", "/a/b"],
    ["/a/c", undefined],
    ["/t", "/t/*"],
    ["/t/", "/t/*"],
    ["/t/a/b", "/t/*"],
    ["/tt", undefined],
    ["/T", undefined],
    ["__proto__", undefined],
  ])("finds for %s the route %s", (path, route) => {
    expect(find(path)?.path).toBe(route);
  });
});
