import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isEmptyAt, type JsonKind, kindAt, sliceElements, sliceMembers, textAt } from "../../src/json/json-slice.js";

describe("isEmptyAt()", () => {
  it.each([
    [" { \n } ", true],
    ["{}", true],
    ["[ ]", true],
    ['{"}":1}', false],
    ["[{}]", false],
    ["[[]]", false],
  ])("tells whether %j has nothing in it: %j", (text, isEmpty) => {
    expect(isEmptyAt(Buffer.from(text))).toBe(isEmpty);
  });

  it("looks at the value at its place only", () => {
    const text = Buffer.from('[{"a":1},{}]');
    expect([isEmptyAt(text, 1), isEmptyAt(text, 9)]).toEqual([false, true]);
  });
});

describe("sliceMembers()", () => {
  it.each<[string, string[][]]>([
    ["{}", []],
    [" { \n } ", []],
    ["[]", []],
    ['"{}"', []],
    ["1", []],
    [
      '{"b":1,"a":2}',
      [
        ["b", "1"],
        ["a", "2"],
      ],
    ],
    [
      '{"10":1,"9":2,"x":3,"0":4}',
      [
        ["10", "1"],
        ["9", "2"],
        ["x", "3"],
        ["0", "4"],
      ],
    ],
    [
      '{"a":1,"a":[2]}',
      [
        ["a", "1"],
        ["a", "[2]"],
      ],
    ],
    [
      '{"__proto__":{"admin":true},"constructor":{"prototype":{}}}',
      [
        ["__proto__", '{"admin":true}'],
        ["constructor", '{"prototype":{}}'],
      ],
    ],
    [
      ' \t\r\n{ "a" : 1.0 , "b" :\n[ 1 , 2 ]\n, "c":null }\n',
      [
        ["a", "1.0"],
        ["b", "[ 1 , 2 ]"],
        ["c", "null"],
      ],
    ],
    ['{"com.example.ugc.ShareContent":{"a.b":1}}', [["com.example.ugc.ShareContent", '{"a.b":1}']]],
    [
      '{"":"","\\u0061\\n\\"\\\\":"\\"}{][,:\\\\"}',
      [
        ["", '""'],
        ['a\n"\\', '"\\"}{][,:\\\\"'],
      ],
    ],
    ['{"\\ud800":"\\udc00"}', [["\ud800", '"\\udc00"']]],
    ['{"€😀":"😀€"}', [["€😀", '"😀€"']]],
    [
      '{"a":{"b":"}"},"c":["]",{"d":"["}],"e":-1e+5}',
      [
        ["a", '{"b":"}"}'],
        ["c", '["]",{"d":"["}]'],
        ["e", "-1e+5"],
      ],
    ],
    [
      '{"a":9007199254740993,"b":1e400}',
      [
        ["a", "9007199254740993"],
        ["b", "1e400"],
      ],
    ],
  ])("slices %j", (json, expected) => {
    expect(membersOf(json)).toEqual(expected);
  });

  it("reads between start and end of larger text, which may be a view of larger memory", () => {
    const memory = Buffer.from('xx[{"a":1},{"b":{"c":2}}]yy');
    const json = memory.subarray(2, -2);
    const [, second] = sliceElements(json);
    expect(second).toEqual({ start: 9, end: 22 });
    expect(sliceMembers(json, second?.start, second?.end)).toEqual([{ key: "b", start: 14, end: 21 }]);
    expect(sliceMembers(json, 10, 22)).toEqual([]);
    expect(sliceMembers(json, 14)).toEqual([{ key: "c", start: 19, end: 20 }]);
  });

  it("takes a million levels, without stack", () => {
    const deep = "[".repeat(1_000_000) + "]".repeat(1_000_000);
    expect(sliceMembers(Buffer.from(`{"a":${deep},"b":1}`))).toEqual([
      { key: "a", start: 5, end: 2_000_005 },
      { key: "b", start: 2_000_010, end: 2_000_011 },
    ]);
  });

  it("gives back what JSON.parse gives, and all bytes between", () => {
    const run = fc.property(anyObject(), fc.constantFrom(undefined, 1, "\t \n"), (object, indent) => {
      const json = Buffer.from(JSON.stringify(object, null, indent));
      const members = sliceMembers(json);
      expect(members.map(({ key }) => key)).toEqual(Object.keys(object));
      for (const { key, start, end } of members) {
        expect(JSON.parse(json.toString("utf8", start, end))).toEqual(JSON.parse(json.toString())[key]);
      }
      const again = members.map(({ key, start, end }) => `${JSON.stringify(key)}:${json.toString("utf8", start, end)}`);
      if (indent === undefined) expect(`{${again.join(",")}}`).toBe(json.toString());
    });
    fc.assert(run, { seed: 20261127, numRuns: 500 });
  });

  it("ends on text that is not JSON", () => {
    const run = fc.property(fc.array(fc.constantFrom(...Buffer.from('{}[]",:\\ 1')), { maxLength: 12 }), (text) => {
      for (const first of "{[") {
        sliceMembers(Buffer.from([first.charCodeAt(0), ...text.filter((byte) => byte !== 0x5c)]));
        sliceElements(Buffer.from([first.charCodeAt(0), ...text]));
      }
    });
    fc.assert(run, { seed: 20261127, numRuns: 1_000 });
  });
});

describe("sliceElements()", () => {
  it.each<[string, string[]]>([
    ["[]", []],
    [" [ \n ] ", []],
    ["{}", []],
    ['{"a":[1]}', []],
    ['"[1]"', []],
    ["[1]", ["1"]],
    ["[ 1 , -2.50 ,\n[ ] , {} ]", ["1", "-2.50", "[ ]", "{}"]],
    ['["a,b","]",[["]"]],true,null,false]', ['"a,b"', '"]"', '[["]"]]', "true", "null", "false"]],
    ['["\\\\","\\"]","\\\\\\""]', ['"\\\\"', '"\\"]"', '"\\\\\\""']],
  ])("slices %j", (json, expected) => {
    const bytes = Buffer.from(json);
    expect(sliceElements(bytes).map(({ start, end }) => bytes.toString("utf8", start, end))).toEqual(expected);
  });

  it("joins back to the text", () => {
    const run = fc.property(fc.array(fc.jsonValue({ maxDepth: 3 })), (array) => {
      const json = Buffer.from(JSON.stringify(array));
      const again = sliceElements(json).map(({ start, end }) => json.toString("utf8", start, end));
      expect(`[${again.join(",")}]`).toBe(json.toString());
    });
    fc.assert(run, { seed: 20261127, numRuns: 300 });
  });
});

describe("kindAt()", () => {
  it.each<[string, JsonKind]>([
    ["{}", "object"],
    ["[]", "array"],
    ['""', "string"],
    ["0", "number"],
    ["-1", "number"],
    ["true", "true"],
    ["false", "false"],
    ["null", "null"],
    [" \r\n\t{}", "object"],
  ])("%j is %s", (json, kind) => {
    expect(kindAt(Buffer.from(json))).toBe(kind);
    expect(kindAt(Buffer.from(`[1,${json}]`), 3)).toBe(kind);
  });
});

describe("textAt()", () => {
  it.each([
    ['""', ""],
    ['"a"', "a"],
    ['"€\\u20ac\\/\\n"', "€€/\n"],
    ['"\\ud83d\\ude00"', "😀"],
    ['"\\ud800"', "\ud800"],
    ["1.0", "1.0"],
    ["[ 1 ]", "[ 1 ]"],
    ['{"a":"\\n"}', '{"a":"\\n"}'],
    ["null", "null"],
  ])("of %s", (json, text) => {
    const bytes = Buffer.from(` ${json} `);
    expect(textAt(bytes, { start: 1, end: bytes.length - 1 })).toBe(text);
  });
});

function membersOf(json: string): string[][] {
  const bytes = Buffer.from(json);
  return sliceMembers(bytes).map(({ key, start, end }) => [key, bytes.toString("utf8", start, end)]);
}

function anyObject(): fc.Arbitrary<Record<string, unknown>> {
  return fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }));
}
