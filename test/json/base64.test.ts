import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesFromBase64 } from "../../src/json/json-slice.js";

describe("bytesFromBase64()", () => {
  it.each([
    "=",
    "==",
    "A",
    "A=",
    "A==",
    "A===",
    "AA=",
    "AA===",
    "AAA==",
    "AAAA=",
    "AAAA==",
    "AA==AA==",
    "AA=A",
    "=AAA",
    "AAAAA",
    "AA AA",
    "AAAA\n",
    "\r\nAAAA",
    "AAAA AAAA AAAA AAAA",
    "AA.A",
    "AA%2B",
    "ŁŁŁŁ",
    "AAA\u0141",
    "ＡＡＡＡ",
    "éééé",
    "\ud800AAA",
    "AAA\u0000",
    "data:AAAA",
    "data:,AAAA",
    "data:image/png,AAAA",
    "data:image/png;base64",
    "data:image/png;base64,A",
    " data:image/png;base64,AAAA",
    "data:image/png;base64,data:image/png;base64,AAAA",
    `data:${"x".repeat(300)};base64,AAAA`,
    "hello world",
  ])("refuses %j", (text) => {
    expect(bytesFromBase64(text)).toBeUndefined();
  });

  it.each([
    ["", ""],
    ["AA", "00"],
    ["AA==", "00"],
    ["AAA", "0000"],
    ["AAA=", "0000"],
    ["+/+/", "fbffbf"],
    ["-_-_", "fbffbf"],
    ["_w", "ff"],
    ["data:image/png;base64,/w==", "ff"],
    ["DATA:;BASE64,/w", "ff"],
    ["data:text/plain;charset=utf-8;base64,", ""],
  ])("decodes %j", (text, hex) => {
    expect(bytesFromBase64(text)?.toString("hex")).toBe(hex);
  });

  it("refuses every character outside the alphabets, at every place", () => {
    const allowed = /^[A-Za-z0-9+/_-]$/;
    for (let code = 0; code <= 0x2ff; code++) {
      const character = String.fromCharCode(code);
      if (allowed.test(character)) continue;
      for (const length of [1, 2, 3, 4, 6, 7, 8, 64]) {
        for (let at = 0; at <= length; at++) {
          if (character === "=" && at === length) continue;
          const text = `${"A".repeat(at)}${character}${"A".repeat(length - at)}`;
          expect([text, bytesFromBase64(text)]).toEqual([text, undefined]);
        }
      }
    }
  });

  it("decodes what Buffer encodes", () => {
    const run = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const standard = Buffer.from(bytes).toString("base64");
      const urlSafe = Buffer.from(bytes).toString("base64url");
      for (const text of [standard, urlSafe, standard.replace(/=+$/, ""), `data:a/b;base64,${standard}`]) {
        expect(bytesFromBase64(text)).toEqual(Buffer.from(bytes));
      }
    });
    fc.assert(run, { seed: 20261127, numRuns: 300 });
  });
});
