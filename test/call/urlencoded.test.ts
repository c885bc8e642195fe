import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formFromJson, isUrlencoded } from "../../src/call/urlencoded.js";
import { atOnce } from "../../src/lib/turns.js";
import { ROOMY } from "../support/roomy.js";

const TOO_LONG_IN_TOTAL = "makes the repeated names too long in total";

describe("formFromJson()", () => {
  it.each([
    ['{"a":null,"b":""}', "a=&b="],
    ['{"message":"t","access_token":"PAGE_TOKEN"}', "message=t&access_token=PAGE_TOKEN"],
    ['{"a":1.0,"b":true,"c":[1,"x",false]}', "a=1.0&b=true&c=1%2Cx%2Cfalse"],
    ['{"a":{"b": 1},"c":[{"d":[ ]}]}', "a=%7B%22b%22%3A+1%7D&c=%5B%7B%22d%22%3A%5B+%5D%7D%5D"],
    ['{"a b":"c d+&=\\r\\n","é":"😀"}', "a+b=c+d%2B%26%3D%0D%0A&%C3%A9=%F0%9F%98%80"],
    ['{"9":1,"10":2,"9":3,"__proto__":4}', "9=1&10=2&9=3&__proto__=4"],
    ['{"a":"\\ud800"}', "a=%EF%BF%BD"],
  ])("of %s", (json, form) => {
    expect(atOnce(formFromJson(Buffer.from(json), ROOMY)).toString("latin1")).toBe(form);
  });

  it("makes a pair of each element of an array where the caller asks for it", () => {
    const json = Buffer.from('{"a b":[1.0,"x,y",null,{ "b":1},[2]],"c":[],"d":1,"e":["z"]}');
    expect(atOnce(formFromJson(json, ROOMY, true)).toString("latin1")).toBe(
      "a+b=1.0&a+b=x%2Cy&a+b=&a+b=%7B+%22b%22%3A1%7D&a+b=%5B2%5D&d=1&e=z",
    );
  });

  it("refuses a name that is repeated until it fills the memory, long before it does", () => {
    const named = (length: number) => Buffer.from(JSON.stringify({ ["n".repeat(length)]: Array(100_000).fill(1) }));
    expect(atOnce(formFromJson(named(80), ROOMY, true))).toHaveLength(100_000 * 83 - 1);
    let held = 0;
    const memory = {
      reserve(bytes: number) {
        held += bytes;
        return true;
      },
    };
    expect(() => atOnce(formFromJson(named(16_000), memory, true))).toThrow(TOO_LONG_IN_TOTAL);
    expect(held).toBeLessThan(9_000_000);
  });

  it("counts the names that all arrays repeat, not those of each array", () => {
    const members = Array.from({ length: 10 }, (_, at) => [String(at).padEnd(16_000, "n"), Array(500).fill(1)]);
    const json = Buffer.from(JSON.stringify(Object.fromEntries(members)));
    expect(json.length).toBeLessThan(200_000);
    let held = 0;
    const memory = {
      reserve(bytes: number) {
        held += bytes;
        return true;
      },
    };
    expect(() => atOnce(formFromJson(json, memory, true))).toThrow(`payload member 2 ${TOO_LONG_IN_TOTAL}`);
    expect(held).toBeLessThan(9_000_000);
  });

  it("is read back by a form parser", async () => {
    const texts = fc.dictionary(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }));
    const run = fc.asyncProperty(texts, async (object) => {
      const body = atOnce(formFromJson(Buffer.from(JSON.stringify(object)), ROOMY));
      const form = await new Response(body, {
        headers: { "content-type": "application/x-www-form-urlencoded" },
      }).formData();
      expect([...form]).toEqual(Object.entries(object));
    });
    await fc.assert(run, { seed: 20261127, numRuns: 200 });
  });
});

describe("formFromJson() of much", () => {
  const json = (value: unknown) => Buffer.from(JSON.stringify(value));

  it("tells of its bytes as it writes them, and ends where there is no room for more", () => {
    const long = json({ a: "☕".repeat(500_000), b: [1, 2] });
    let held = 0;
    let most = Number.POSITIVE_INFINITY;
    const memory = {
      reserve(bytes: number) {
        held += bytes;
        return held <= most;
      },
    };
    const form = atOnce(formFromJson(long, memory));
    expect(held).toBe(form.length);
    expect(held).toBeGreaterThan(4_000_000);
    held = 0;
    most = 1_000_000;
    expect(() => atOnce(formFromJson(long, memory))).toThrow(expect.objectContaining({ reason: "OVERLOADED" }));
    expect(held).toBeLessThan(1_300_000);
  });

  it("refuses a name that takes long to encode, wherever it stands", () => {
    const named = (length: number) => json({ a: 1, ["☕".repeat(length)]: 1 });
    expect(() => atOnce(formFromJson(named(16_385), ROOMY))).toThrow("payload member 2 has a name of more than 16384");
    expect(atOnce(formFromJson(named(16_384), ROOMY)).length).toBe("a=1&=1".length + 9 * 16_384);
  });

  it("pauses among many short elements, which take longer to write than to read", () => {
    const pauses = [...formFromJson(json({ a: Array(100_000).fill(1) }), ROOMY)].length;
    expect(pauses).toBeGreaterThan(2 * 40);
  });
});

describe("isUrlencoded()", () => {
  it.each([
    [undefined, false],
    ["", false],
    ["application/x-www-form-urlencodedx", false],
    ["text/plain; x=application/x-www-form-urlencoded", false],
    ["application/x-www-form-urlencoded", true],
    ["Application/X-WWW-Form-URLEncoded ;charset=UTF-8", true],
  ])("%j: %s", (contentType, expected) => {
    expect(isUrlencoded(contentType)).toBe(expected);
  });
});
