import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { appendQuery } from "../../src/call/allowed-call.js";
import { queryFromJson } from "../../src/call/urlencoded.js";

describe("queryFromJson()", () => {
  it.each<[string, string[][]]>([
    ["{}", []],
    ['{"a":null}', [["a", ""]]],
    ['{"a":""}', [["a", ""]]],
    ['{"":1}', [["", "1"]]],
    [
      '{"part":"id","mine":"true","forMine":true,"x":false}',
      [
        ["part", "id"],
        ["mine", "true"],
        ["forMine", "true"],
        ["x", "false"],
      ],
    ],
    [
      '{"a":1.0,"b":1e2,"c":-0,"d":9007199254740993,"e":1e400}',
      [
        ["a", "1.0"],
        ["b", "1e2"],
        ["c", "-0"],
        ["d", "9007199254740993"],
        ["e", "1e400"],
      ],
    ],
    ['{"a":["x",1.0,true,null,"y,z"]}', [["a", "x,1.0,true,,y,z"]]],
    [
      '{"a":[],"b":{}}',
      [
        ["a", ""],
        ["b", "{}"],
      ],
    ],
    [
      '{"a":[ {"media_fbid" : "1"},\n{"media_fbid":"\\u0032"} ]}',
      [["a", '[ {"media_fbid" : "1"},\n{"media_fbid":"\\u0032"} ]']],
    ],
    [
      '{"a":[1,[2]],"b":["x",{}],"c":[[]]}',
      [
        ["a", "[1,[2]]"],
        ["b", '["x",{}]'],
        ["c", "[[]]"],
      ],
    ],
    ['{"a": { "b" : [1, 2.0] } }', [["a", '{ "b" : [1, 2.0] }']]],
    [
      '{"10":"a","9":"b","10":"c"}',
      [
        ["10", "a"],
        ["9", "b"],
        ["10", "c"],
      ],
    ],
    [
      '{"__proto__":"a","com.example.x":"b"}',
      [
        ["__proto__", "a"],
        ["com.example.x", "b"],
      ],
    ],
    ['{"\\u00e9":"\\n\\ud83d\\ude00\\/"}', [["é", "\n😀/"]]],
  ])("of %s", (json, pairs) => {
    expect(queryFromJson(Buffer.from(json))).toEqual(pairs);
  });

  it("makes a pair of each element of an array where the caller asks for it", () => {
    const json = '{"a":[1.0,"x,y",null,{ "b":1},[2]],"c":[],"d[]":["1"],"e":{"f":[1]},"a":2}';
    expect(queryFromJson(Buffer.from(json), true)).toEqual([
      ["a", "1.0"],
      ["a", "x,y"],
      ["a", ""],
      ["a", '{ "b":1}'],
      ["a", "[2]"],
      ["d[]", "1"],
      ["e", '{"f":[1]}'],
      ["a", "2"],
    ]);
  });

  it("refuses a name that would be repeated beyond any request line", () => {
    const named = (length: number) => Buffer.from(JSON.stringify({ ["n".repeat(length)]: Array(1024).fill(1) }));
    expect(queryFromJson(named(32), true)).toHaveLength(1024);
    expect(() => queryFromJson(named(33), true)).toThrow("too long in total for a query");
  });
});

describe("appendQuery()", () => {
  it.each<[path: string, pairs: Array<[string, string]>, expected: string]>([
    ["/a", [], "/a"],
    ["/a?", [], "/a?"],
    ["/", [["a", "1"]], "/?a=1"],
    ["/a?", [["b", "1"]], "/a?b=1"],
    [
      "/a?x=1",
      [
        ["b", "1"],
        ["c", "2"],
      ],
      "/a?x=1&b=1&c=2",
    ],
    ["/a?x=1&", [["b", "1"]], "/a?x=1&b=1"],
    ["/a&", [["b", "1"]], "/a&?b=1"],
    ["/a?x=?", [["b", "1"]], "/a?x=?&b=1"],
    [
      "/a?b=0",
      [
        ["b", "1"],
        ["b", "2"],
      ],
      "/a?b=0&b=1&b=2",
    ],
    ["/a", [["", ""]], "/a?="],
    ["/a", [["a b", "c+d e"]], "/a?a%20b=c%2Bd%20e"],
    ["/a", [["&=#?", "/\\%\"'<>"]], "/a?%26%3D%23%3F=%2F%5C%25%22'%3C%3E"],
    ["/a", [["é", "😀"]], "/a?%C3%A9=%F0%9F%98%80"],
    ["/a", [["\r\nHost: evil", "\u0000\u007f"]], "/a?%0D%0AHost%3A%20evil=%00%7F"],
    ["/a", [["\ud800", "a\udc00b"]], "/a?%EF%BF%BD=a%EF%BF%BDb"],
  ])("to %s", (path, pairs, expected) => {
    expect(appendQuery(path, pairs)).toBe(expected);
  });

  it("is read back by a URL parser, after what was there", () => {
    const text = fc.string({ unit: "binary" });
    const run = fc.property(fc.array(fc.tuple(text, text), { minLength: 1 }), (pairs) => {
      const path = appendQuery("/p?x=1", pairs);
      expect(path).toMatch(/^[\x21-\x7e]+$/);
      const url = new URL(path, "https://api.example");
      expect([...url.searchParams]).toEqual([["x", "1"], ...pairs]);
      expect(url.hash).toBe("");
    });
    fc.assert(run, { seed: 20261127, numRuns: 300 });
  });
});
