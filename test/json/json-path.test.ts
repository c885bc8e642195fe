import { describe, expect, it } from "vitest";
import { pathInSteps, slicePath } from "../../src/json/json-path.js";

describe("slicePath()", () => {
  it.each<[path: string, json: string, expected: string | undefined]>([
    ["", "{}", undefined],
    ["", "1", undefined],
    ["", '{"":1}', "1"],
    [".", '{"":{"":2}}', "2"],
    ["a", "1", undefined],
    ["a", '"a"', undefined],
    ["a", '{"b":{"a":1}}', undefined],
    ["a.b", '{"a.b":1}', undefined],
    ["a.b.c", '{"a":{"b":1}}', undefined],
    ["a", '{"a":1,"a":2}', "2"],
    ["a.b", '{"a":{"b":1},"a":{}}', undefined],
    ["a.b", '{"a":{},"a":{"b":[ 1 ]} }', "[ 1 ]"],
    ["a.b", '{"a":{"b":1,"b":2},"c":{"b":3}}', "2"],
    ["length", "[1]", undefined],
    ["-1", "[1]", undefined],
    ["01", "[1,2]", undefined],
    ["1.0", "[1,2]", undefined],
    ["1e0", "[1,2]", undefined],
    [" 1", "[1,2]", undefined],
    ["2", "[1,2]", undefined],
    ["99999999999999999999", "[1,2]", undefined],
    ["1", "[1,2]", "2"],
    ["01", '{"01":1}', "1"],
    ["__proto__", "{}", undefined],
    ["constructor.name", "{}", undefined],
    ["toString", "{}", undefined],
    ["__proto__.a", '{"__proto__":{"a":1}}', "1"],
    ["é", '{"\\u00e9":1}', "1"],
    ["a\\nb", '{"a\\nb":1}', undefined],
    ["a\nb", '{"a\\nb":1}', "1"],
    ["a", '{"\\u0061":1,"b":2}', "1"],
    ["rows.0.data", '{"rows":[{"pincStatus":"success","data":{"data":1},"headers":{"data":"x"}}]}', '{"data":1}'],
    ["rows.0", '{"rows":[ {"a":"]}"} ]}', '{"a":"]}"}'],
    ["rows.0.data.items.1", ' {"rows":[{"data":{"items":[{"a":1}, "b" ]}}]} ', '"b"'],
    ["rows.1.data", '{"rows":[{"data":1}]}', undefined],
    ["rows", '{"rows":[]}', "[]"],
    ["a.b.c", '{"a":{"b":{}},"b":{"c":1}}', undefined],
    ["x.a.0", '{"x":{"a":[]},"a":[7]}', undefined],
    ["ROWS", '{"rows":[]}', undefined],
  ])("%j in %s", (path, json, expected) => {
    const bytes = Buffer.from(json);
    const found = slicePath(bytes, path);
    expect(found && bytes.toString("utf8", found.start, found.end)).toBe(expected);
  });

  it("reads a view of larger memory", () => {
    const bytes = Buffer.from('xx{"a":[1,23]}').subarray(2);
    expect(slicePath(bytes, "a.1")).toEqual({ start: 8, end: 10 });
  });

  it("finds nothing behind more than 64 segments", () => {
    const json = Buffer.from("[".repeat(100) + "]".repeat(100));
    expect(slicePath(json, Array(64).fill("0").join("."))).toEqual({ start: 64, end: 136 });
    expect(slicePath(json, Array(65).fill("0").join("."))).toBeUndefined();
  });

  it("takes one pass, however long the path is", () => {
    const json = Buffer.from(`${"[".repeat(64)}"${"x".repeat(2_000_000)}"${"]".repeat(64)}`);
    const pausesFor = (path: string) => [...pathInSteps(json, path)].length;
    const once = pausesFor("0");
    expect(once).toBeGreaterThan(10);
    expect(pausesFor(Array(64).fill("0").join("."))).toBeLessThanOrEqual(once + 64);
  });
});
