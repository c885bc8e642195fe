import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createJsonChecker,
  isJson,
  type JsonLimits,
  type JsonVerdict,
  validateJson,
} from "../../src/json/json-validator.js";

const LONG = "1234567890".repeat(15);

const ACCEPTED = [
  "0",
  "-0",
  "1e400",
  "1E-400",
  "0.1e-400",
  "-1.5e+10",
  '""',
  '"\\ud800"',
  '"\\udc00\\ud800"',
  '"a\\u0000b"',
  '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00Ef"',
  '"\u007f\u0080\u2028\ufeff😀"',
  "true",
  "false",
  "null",
  "{}",
  "[]",
  " \t\r\n[ \n ] \n",
  '{"a":1,"a":2}',
  '{"":{"":[]}}',
  '{"__proto__":{"admin":true},"constructor":null}',
  '\n{\n    "a"\n    :\n    [\n        1\n        ,\n        {}\n    ]\n}\n        ',
  "9".repeat(1000),
  "-9.75E+07",
  "0e0",
  "[-1.0e-1,0.00,10,true,false,null,1E2]",
  // Numbers of which each part is longer than a block.
  `-${LONG}.${LONG}e-${LONG}`,
  `${LONG}.0`,
  `0.${LONG}e0`,
];

const REFUSED = [
  "",
  " ",
  "\n".repeat(100),
  "\ufeff1",
  "\ufeff",
  "-",
  "+1",
  "01",
  "-01",
  "1.",
  ".5",
  "1e",
  "1e+",
  "1.e1",
  "0x1",
  "1_0",
  "NaN",
  "Infinity",
  "-Infinity",
  "undefined",
  "tru",
  "truee",
  "True",
  "nul",
  "nulll",
  '"',
  '"\\',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"\u0000"',
  '"\t"',
  '"\n"',
  '"\u001f"',
  "'a'",
  "[",
  "]",
  "[1",
  "[,]",
  "[1,]",
  "[,1]",
  "[1 2]",
  "[1}",
  "{",
  "}",
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{,"a":1}',
  '{"a":1 "b":2}',
  '{"a" 1}',
  '{"a"::1}',
  "{a:1}",
  "{1:1}",
  '{"a":1]',
  '{"a":1}{"b":2}',
  "1 2",
  "[] []",
  '"a""b"',
  "// c\n1",
  "/**/1",
  "\u00a01",
  "\u20281",
  "\v1",
  "\f1",
  "\u00001",
  "1\u0000",
  "<html>",
  "1.2.3",
  "1.e5",
  "-.5",
  "-e5",
  "--1",
  "-+1",
  "1-1",
  "1+1",
  "00",
  "-00",
  "01.5",
  "1ee5",
  "1d5",
  "1e5.5",
  "1e5e5",
  "1.5e5E5",
  "1e--5",
  "1e5-5",
  "1e-",
  "e5",
  "1;",
  "1/2",
  "true1",
  "true.5",
  "true-1",
  "nullnull",
  "falsee",
  "truee5",
  "nullE+1",
  "fals",
  "truE",
  "-true",
  "1true",
  '"a"1',
  'true"a"',
  ",",
  "1,2",
  "{},1",
  "[],",
  '1,"a":2',
  '{},"a":1',
  "[1\f2]",
  '{"a"\u001a1}',
  "[1\u000b2]",
  `${LONG}.${LONG}.5`,
  `${LONG}e${LONG}.5`,
  `1.${LONG}e${LONG}e5`,
  `0${LONG}`,
  `-0${LONG}`,
  `${LONG}-`,
];

describe("validateJson()", () => {
  it.each(ACCEPTED)("accepts %j, as JSON.parse does", (text) => {
    JSON.parse(text);
    expect(verdictsOf(Buffer.from(text))).toEqual(["valid", "valid"]);
  });

  it.each(REFUSED)("refuses %j, as JSON.parse does", (text) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
    expect(verdictsOf(Buffer.from(text))).toEqual(["syntax", "syntax"]);
  });

  it.each([
    ["a lone continuation byte", "22 80 22"],
    ["a cut sequence inside a string", "22 e2 82 22"],
    ["a cut sequence at the end", "22 e2 82"],
    ["an overlong slash", "22 c0 af 22"],
    ["an overlong NUL", "22 e0 80 80 22"],
    ["a surrogate in UTF-8", "22 ed a0 80 22"],
    ["a code point above U+10FFFF", "22 f4 90 80 80 22"],
    ["a lead byte that does not exist", "22 f8 88 80 80 80 22"],
    ["0xff", "22 ff 22"],
    ["latin1", "22 e9 22"],
    ["UTF-16", "ff fe 31 00"],
    ["bytes from 0x80 outside strings", "c2 a0 31"],
    ["a byte order mark", "ef bb bf 31"],
  ])("refuses %s", (_name, hex) => {
    expect(verdictsOf(Buffer.from(hex.replaceAll(" ", ""), "hex"))).toEqual(["syntax", "syntax"]);
  });

  it("says the same wherever in a block of 64 bytes a text lies", () => {
    for (const text of [...ACCEPTED, ...REFUSED]) {
      for (let shift = 0; shift < 64; shift++) {
        const shifted = Buffer.from(`${" ".repeat(shift)}${text}`);
        requireAgreement(shifted);
        const inside = Buffer.from(`{"${"k".repeat(shift)}":[${text}]}`);
        requireAgreement(inside);
      }
    }
  });

  it("says the same of any byte at any place", () => {
    const text = Buffer.from('{"a\\u00e9":[-1.5e+3,0,true,"b"] , "":{"c":null,"d":[false,{},10]}}');
    for (const lead of ["", `["${"x".repeat(90)}",`, " ".repeat(40)]) {
      const whole = Buffer.concat([Buffer.from(lead), text, Buffer.from(lead.startsWith("[") ? "]" : "")]);
      for (let at = lead.length; at < whole.length; at++) {
        const kept = whole[at] as number;
        for (let byte = 0; byte < 256; byte++) {
          whole[at] = byte;
          requireAgreement(whole);
        }
        whole[at] = kept;
      }
    }
  });

  it("finds what may not be inside of a string of many blocks", () => {
    for (let at = 2; at < 260; at++) {
      for (const fault of ["\u0000", "\u001f", "\n", "\\x", "\\u12g4", '"']) {
        const text = Buffer.from(`["${"x".repeat(300)}"]`);
        text.write(fault, at, "latin1");
        requireAgreement(text);
      }
    }
  });

  it("takes nesting of a million levels, without stack", () => {
    const levels = 1_000_000;
    expect(judge(Buffer.from("[".repeat(levels) + "]".repeat(levels)))).toBe("valid");
    expect(judge(Buffer.from("[".repeat(levels) + "]".repeat(levels - 1)))).toBe("syntax");
    expect(judge(Buffer.from(`${'[{"a":'.repeat(levels)}0${"}]".repeat(levels)}`))).toBe("valid");
    expect(judge(Buffer.from(`${'[{"a":'.repeat(levels)}0${"]}".repeat(levels)}`))).toBe("syntax");
  });

  it("remembers which brackets are open over word borders", () => {
    for (let depth = 1; depth < 140; depth++) {
      const kinds = Array.from({ length: depth }, (_, level) => (level * 7 + depth) % 3 === 0);
      const open = kinds.map((isObject) => (isObject ? '{"a":' : "[")).join("");
      const closed = kinds.map((isObject) => (isObject ? "}" : "]")).reverse();
      expect(judge(Buffer.from(`${open}0${closed.join("")}`))).toBe("valid");
      closed[depth >> 1] = closed[depth >> 1] === "}" ? "]" : "}";
      expect(judge(Buffer.from(`${open}0${closed.join("")}`))).toBe("syntax");
    }
  });

  it("remembers what is open behind what was closed", () => {
    for (let depth = 1; depth < 140; depth++) {
      const kinds = Array.from({ length: depth }, (_, level) => (level * 5 + depth) % 3 === 0);
      const open = kinds.map((isObject) => (isObject ? '{"a":' : "[")).join("");
      const closed = kinds.map((isObject): string => (isObject ? ',"b":[{}]}' : ",{}]")).reverse();
      expect(judge(Buffer.from(`${open}0${closed.join("")}`))).toBe("valid");
      for (const level of [0, depth >> 1, depth - 1]) {
        const wrong = closed.with(level, closed[level] === ",{}]" ? ',"b":[{}]]' : ",{}}");
        expect(judge(Buffer.from(`${open}0${wrong.join("")}`))).toBe("syntax");
      }
      expect(judge(Buffer.from(`${open}0${closed.join("")}]`))).toBe("syntax");
      expect(judge(Buffer.from(`${open}0${closed.join("")}}`))).toBe("syntax");
    }
  });

  it.each<[JsonVerdict, string, JsonLimits]>([
    ["valid", "1", { maxDepth: 0 }],
    ["depth", "[]", { maxDepth: 0 }],
    ["valid", "[[{}]]", { maxDepth: 3 }],
    ["depth", "[[{}]]", { maxDepth: 2 }],
    ["valid", "[[],[],[[]]]", { maxDepth: 3 }],
    ["depth", "[".repeat(65), { maxDepth: 64 }],
    ["syntax", "[".repeat(64), { maxDepth: 64 }],
    ["valid", '{"a":{"b":1}}', { maxKeys: 2 }],
    ["keys", '{"a":{"b":1},"c":1}', { maxKeys: 2 }],
    ["keys", '{"a":1,"a":2,"a":3}', { maxKeys: 2 }],
    ["keys", '{"a":1', { maxKeys: 0 }],
    ["valid", '["a","b\\"c","d"]', { maxKeys: 0 }],
    ["valid", '{"a\\"b\\u0041":":","c":"d"}', { maxKeys: 2 }],
    ["syntax", '{"a":!,"b":1,"c":[[]]}', { maxKeys: 1, maxDepth: 1 }],
    ["depth", '[[!,{"a":1}]]', { maxKeys: 0, maxDepth: 1 }],
    ["valid", '{"a":[]}', { maxDepth: undefined, maxKeys: undefined }],
  ])("answers %s to %j with %j", (verdict, text, limits) => {
    for (let shift = 0; shift < 64; shift++) {
      expect(validateJson(Buffer.from(`${" ".repeat(shift)}${text}`), limits)).toBe(verdict);
    }
  });

  it("says which of syntax, depth and keys is at fault first in generated and mutated texts", () => {
    const limits = fc.record({ maxDepth: fc.nat(5), maxKeys: fc.nat(10) }, { requiredKeys: [] });
    const run = fc.property(jsonText(), mutations(), limits, (text, changes, most) => {
      const bytes = changes.reduce(mutate, Buffer.from(text));
      // Of UTF-8 a slice is checked before its syntax.
      fc.pre(isUtf8(bytes));
      expect(validateJson(bytes, most)).toBe(firstFaultOf(bytes, most));
    });
    fc.assert(run, { seed: 20261129, numRuns: 5_000 });
  });

  it("agrees with JSON.parse on every short text of JSON characters", () => {
    for (const text of shortTexts('{}[]",:\\01-.eEu+ \nt', 3)) {
      for (const whole of [text, `[${text}]`, `{"a":${text}}`, `{"a${text}`]) {
        requireAgreement(Buffer.from(whole));
      }
    }
  });

  it("agrees with JSON.parse on every few tokens, however far apart", () => {
    const tokens = ["{", "}", "[", "]", ",", ":", '"a"', "1", "true"];
    const lists = tokens.flatMap((a) => tokens.flatMap((b) => tokens.flatMap((c) => tokens.map((d) => [a, b, c, d]))));
    for (const gap of ["", " ".repeat(70), "\n".repeat(130)]) {
      for (const list of [...tokens.map((token) => [token]), ...lists]) {
        for (const [before, after] of [
          ["", ""],
          ["[", "]"],
          ['{"b":', "}"],
        ]) {
          const text = Buffer.from([before, ...list, after].join(gap));
          requireAgreement(text);
        }
      }
    }
  });

  it("agrees with JSON.parse on every byte after every kind of beginning", () => {
    const beginnings = ["", ...ACCEPTED, ...REFUSED].flatMap((text) => [text, text.slice(0, -1), text.slice(0, 3)]);
    for (const beginning of new Set(beginnings)) {
      for (let byte = 0; byte < 256; byte++) {
        const text = Buffer.concat([Buffer.from(beginning), Buffer.from([byte])]);
        requireAgreement(text);
      }
    }
  });
});

describe("createJsonChecker()", () => {
  it("agrees with JSON.parse on generated and mutated texts at random chunk borders", () => {
    const run = fc.property(jsonText(), mutations(), borders(), (text, changes, cuts) => {
      const bytes = changes.reduce(mutate, Buffer.from(text));
      expect(verdictInChunks(bytes, cuts)).toBe(expectedOf(bytes));
    });
    fc.assert(run, { seed: 20261127, numRuns: 2_000 });
  });

  it("accepts every generated text at random chunk borders", () => {
    const run = fc.property(jsonText(), borders(), (text, cuts) => {
      expect(verdictInChunks(Buffer.from(text), cuts)).toBe("valid");
    });
    fc.assert(run, { seed: 20261127, numRuns: 500 });
  });

  it("finds the end of a string at every distance and in every alignment", () => {
    for (const stop of ['"', "\\n", "\u001f", "é", "\u007f", "!", "#", "[", "]", "\u0000"]) {
      for (let before = 0; before < 20; before++) {
        for (let shift = 0; shift < 4; shift++) {
          const text = Buffer.from(`${" ".repeat(shift)}["${"x".repeat(before)}${stop}yyyyyyyy"]`);
          requireAgreement(text);
        }
      }
    }
  });

  it("checks two texts in turns", () => {
    const [one, other] = [createJsonChecker(), createJsonChecker()];
    for (const chunk of ['{"a', '":[', "1", "]}"]) {
      expect(one.push(Buffer.from(chunk))).toBe(true);
      expect(isJson(Buffer.from("[tru]"))).toBe(false);
      expect(other.push(Buffer.from("[ "))).toBe(true);
    }
    expect(one.end()).toBe(true);
    expect(other.end()).toBe(false);
  });

  it("says false from the block on that is wrong", () => {
    const checker = createJsonChecker();
    expect(checker.push(Buffer.from("["))).toBe(true);
    expect(checker.push(Buffer.from(`}${" ".repeat(100)}`))).toBe(false);
    expect(checker.push(Buffer.from("]"))).toBe(false);
    expect(checker.end()).toBe(false);
    expect(checker.end()).toBe(false);
  });

  it("takes empty chunks anywhere", () => {
    const checker = createJsonChecker();
    for (const chunk of ["", "{", "", '"a', "", '":1}', ""]) expect(checker.push(Buffer.from(chunk))).toBe(true);
    expect(checker.end()).toBe(true);
  });

  it("does not need a chunk after push returned", () => {
    const checker = createJsonChecker();
    const memory = Buffer.from('"€');
    for (const byte of memory) {
      const chunk = Buffer.from([byte]);
      expect(checker.push(chunk)).toBe(true);
      chunk.fill(0xff);
    }
    checker.push(Buffer.from('"'));
    expect(checker.end()).toBe(true);
  });
});

/** What JSON.parse says of it; without an assertion for each of a million texts, which takes longer than all the rest. */
function requireAgreement(bytes: Uint8Array): void {
  const [verdict, expected] = [judge(bytes), expectedOf(bytes)];
  if (verdict !== expected) expect([bytes.toString(), verdict]).toEqual([bytes.toString(), expected]);
}

/** As a whole and byte by byte. */
function verdictsOf(bytes: Uint8Array): JsonVerdict[] {
  const borders = Array.from({ length: bytes.length - 1 }, (_, at) => at + 1);
  return [judge(bytes), verdictInChunks(bytes, borders)];
}

/** In steps, and at once. */
function judge(bytes: Uint8Array): JsonVerdict {
  const verdict = validateJson(bytes);
  if (isJson(bytes) !== (verdict === "valid")) expect.fail(`isJson(): ${bytes}`);
  return verdict;
}

function verdictInChunks(bytes: Uint8Array, cuts: readonly number[]): JsonVerdict {
  const checker = createJsonChecker();
  const borders = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  for (let index = 1; index < borders.length; index++) checker.push(bytes.subarray(borders[index - 1], borders[index]));
  return checker.end() ? "valid" : "syntax";
}

function expectedOf(bytes: Uint8Array): JsonVerdict {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    return "valid";
  } catch {
    // Not UTF-8 or not JSON: what the validator is to say.
    return "syntax";
  }
}

/** By JSON.parse: of each beginning that passes a limit, it is asked whether the beginning could go on. */
function firstFaultOf(bytes: Uint8Array, { maxDepth = 1e6, maxKeys = 1e6 }: JsonLimits): JsonVerdict {
  const isGood = (text: string) => expectedOf(Buffer.from(text, "latin1")) === "valid";
  const text = Buffer.from(bytes).toString("latin1");
  const open: string[] = [];
  let keys = 0;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\[\s\S])*(?:"|$)|[[\]{}]/g)) {
    const before = text.slice(0, index);
    if (token === "]" || token === "}") open.pop();
    else if (!token.startsWith('"')) open.push(token === "[" ? "]" : "}");
    else if (/[{,]\s*$/.test(before) && open.at(-1) === "}") keys++;
    const limit = keys > maxKeys ? "keys" : "depth";
    if (keys <= maxKeys && open.length <= maxDepth) continue;
    const rest = limit === "keys" ? '"":0' : token;
    return isGood(before + rest + open.reverse().join("")) ? limit : "syntax";
  }
  return expectedOf(bytes);
}

function shortTexts(alphabet: string, maxLength: number): string[] {
  const texts = [""];
  for (let from = 0, length = 0; length < maxLength; length++) {
    const to = texts.length;
    for (; from < to; from++) for (const character of alphabet) texts.push(`${texts[from]}${character}`);
  }
  return texts;
}

function jsonText(): fc.Arbitrary<string> {
  const indent = fc.constantFrom("", " ", "  ", "\t", "          ");
  const value = fc.oneof(fc.jsonValue({ maxDepth: 4, stringUnit: "binary" }), fc.jsonValue({ maxDepth: 3 }));
  return fc
    .tuple(value, indent, indent)
    .map(([json, inner, outer]) => outer + JSON.stringify(json, null, inner) + outer);
}

type Mutation = readonly [kind: "insert" | "replace" | "remove", at: number, byte: number];

function mutations(): fc.Arbitrary<Mutation[]> {
  const byte = fc.oneof(fc.constantFrom(...Buffer.from('{}[]",:\\ \n0-.eE+utfn/')), fc.integer({ min: 0, max: 255 }));
  const kind = fc.constantFrom("insert" as const, "replace" as const, "remove" as const);
  return fc.array(fc.tuple(kind, fc.nat(10_000), byte), { maxLength: 3 });
}

function mutate(bytes: Buffer, [kind, position, byte]: Mutation): Buffer {
  const at = position % (bytes.length + 1);
  const inserted = kind === "remove" ? [] : [byte];
  return Buffer.concat([bytes.subarray(0, at), Buffer.from(inserted), bytes.subarray(kind === "insert" ? at : at + 1)]);
}

function borders(): fc.Arbitrary<number[]> {
  return fc.array(fc.nat(10_000), { maxLength: 6 });
}
