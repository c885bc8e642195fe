import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createHostMemory, decideHost, isHost } from "../../src/http/dispatch.js";

describe("isHost()", () => {
  it.each([
    "",
    " ",
    "[",
    "]",
    "[]",
    "[::1",
    "::1",
    "[::1]x",
    "[::1%25eth0]",
    "[v1.x]",
    "[1.2.3.4]",
    "a b",
    "%zz",
    "%41",
    "x:99999",
    "x:65536",
    "x:-1",
    "x:8 0",
    "x:80:80",
    "user@x",
    "user:pass@x",
    "x/y",
    "x\\y",
    "x?y",
    "x#y",
    "x,y",
    "x\ty",
    "x\0",
    "x\n",
    "xé",
    "1.2.3.4.5",
    "1.2.3.256",
    "999999999999",
    "09.1.1.1",
    "xn--",
    "a.xn--.b",
    "xn--a",
    "xn--55555577",
    ":80",
    "a".repeat(256),
  ])("refuses %j", (value) => {
    expect(isHost(value)).toBe(false);
  });

  it.each([
    "x",
    "X.Test",
    "x.",
    "relay.test:443",
    "relay_1:8080",
    "a-b.test:",
    "127.0.0.1",
    "127.0.0.1:8080",
    "[::1]",
    "[::1]:8080",
    "[2001:DB8::1]:0",
    "[::ffff:127.0.0.1]",
    "xn--bcher-kva.test",
    "1password.com",
    "x:65535",
  ])("accepts %j", (value) => {
    expect(isHost(value)).toBe(true);
  });

  it("accepts nothing that new URL() refuses", () => {
    const part = fc.constantFrom(
      "x",
      "xn--",
      "0",
      "0x",
      "9",
      ".",
      "-",
      "_",
      ":",
      "[",
      "]",
      "::",
      "%",
      "@",
      " ",
      "65535",
    );
    const host = fc.oneof(
      fc.string(),
      fc.array(part, { maxLength: 8 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(host, (value) => {
        fc.pre(isHost(value));
        expect(() => new URL(`http://${value}/`)).not.toThrow();
      }),
      { numRuns: 5_000, maxSkipsPerRun: 1_000 },
    );
  });
});

describe("createHostMemory()", () => {
  it("judges each value like isHost(), whatever came before", () => {
    const accepts = createHostMemory();
    expect(["[", "x", "[", "x", "y", "x:99999", "y", ""].map(accepts)).toEqual(
      ["[", "x", "[", "x", "y", "x:99999", "y", ""].map(isHost),
    );
  });
});

describe("decideHost()", () => {
  it.each([
    ["none", [], "no Host"],
    ["a field whose name only has its length", ["dost", "x"], "no Host"],
    ["an empty one", ["Host", ""], "not a name"],
    ["two that differ", ["Host", "x", "hoSt", "y"], "more than one"],
    ["two that are the same", ["Host", "x", "Accept", "*/*", "Host", "x"], "more than one"],
    [":authority and another Host", [":authority", "x", "host", "y"], "differ"],
    [":authority and two Hosts", [":authority", "x", "host", "x", "host", "x"], "more than one"],
    ["an empty :authority and a Host", [":authority", "", "host", "x"], "differ"],
    ["a malformed :authority", [":authority", "["], "not a name"],
  ])("refuses %s", (_name, rawHeaders, text) => {
    expect(decideHost(rawHeaders)).toContain(text);
  });

  it.each([
    ["Host", [":method", "GET", "HOST", "x"]],
    [":authority", [":authority", "x:1"]],
    ["both, when they differ in case only", ["host", "X", ":authority", "x"]],
  ])("accepts %s", (_name, rawHeaders) => {
    expect(decideHost(rawHeaders)).toBeUndefined();
  });
});
