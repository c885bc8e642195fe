import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { pathInSteps } from "../../src/json/json-path.js";
import { ValueScan } from "../../src/json/json-scan.js";
import { base64FromJson, bytesFromBase64, membersInSteps, sliceMembers, textAt } from "../../src/json/json-slice.js";
import { textSlices } from "../../src/json/text-slices.js";
import { atOnce } from "../../src/lib/turns.js";

const whole = (json: Buffer) => ({ start: 0, end: json.length });

/** JSON strings of everything that is difficult to cut. */
const written = fc
  .array(
    fc.constantFrom(
      "\\\\",
      '\\"',
      "\\n",
      "\\u0041",
      "\\ud83d",
      "\\ude00",
      "\\uD83D\\uDE00",
      "\\\\u",
      "é",
      "☕",
      "😀",
      "x",
      "ud83d",
    ),
    { maxLength: 60 },
  )
  .map((parts) => Buffer.from(`"${parts.join("")}"`));

describe("textSlices()", () => {
  it("joined are the text, and no slice breaks a pair, wherever it is cut", () => {
    fc.assert(
      fc.property(written, fc.integer({ min: 16, max: 40 }), (json, size) => {
        const slices = [...textSlices(json, whole(json), size)];
        expect(slices.join("")).toBe(textAt(json, whole(json)));
        // As bytes, which is how they are sent on: half a pair would become U+FFFD in each.
        expect(Buffer.concat(slices.map((slice) => Buffer.from(slice)))).toEqual(
          Buffer.from(textAt(json, whole(json))),
        );
        for (const slice of slices) expect(Buffer.byteLength(slice)).toBeLessThanOrEqual(size * 2);
      }),
      { numRuns: 2000 },
    );
  });

  it("cuts the text of other values between characters", () => {
    const json = Buffer.from(JSON.stringify({ "é☕😀": ["é☕😀\\", 1.5] }).repeat(1));
    for (let size = 16; size < 40; size++) {
      expect([...textSlices(json, whole(json), size)].join("")).toBe(json.toString());
    }
  });

  it("gives a backslash 64 KiB long its escapes", () => {
    const json = Buffer.from(`"x${"\\\\".repeat(100_000)}"`);
    expect([...textSlices(json, whole(json))].join("")).toBe(textAt(json, whole(json)));
  });
});

describe("base64FromJson()", () => {
  const read = (text: string) => {
    const json = Buffer.from(text);
    return atOnce(base64FromJson(json, whole(json)))?.concat();
  };
  const long = Buffer.from(Uint8Array.from({ length: 200_000 }, (_, at) => (at * 167) & 0xff));

  it.each([
    ["nothing", ""],
    ["one byte", "YQ=="],
    ["without padding", "YQ"],
    ["URL-safe", "_-8"],
    ["a wrong length", "YWJjZ"],
    ["padding where none belongs", "YWJj="],
    ["padding alone", "===="],
    ["padding in the middle", `YQ==${long.toString("base64")}`],
    ["a space", "YW Jj"],
    ["a wide character", "YWJ\u0159"],
    ["long", long.toString("base64")],
    ["long, one byte less", long.subarray(1).toString("base64")],
    ["long, two bytes less, without padding", long.subarray(2).toString("base64url")],
    ["long with padding in the middle", `${long.toString("base64").slice(0, 120_002)}==${long.toString("base64")}`],
    ["long with padding where a slice ends", `${long.toString("base64").slice(0, 65_530)}==${long.toString("base64")}`],
    ["long with padding behind it", `${long.toString("base64").slice(0, 65_531)}=${long.toString("base64")}`],
    ["long with a space late", `${long.toString("base64").slice(0, -9)} AAAAAAAA`],
    ["long with a wide character", `${long.toString("base64").slice(0, 80_000)}\u0141AAA`],
    ["a data URL", `data:image/png;base64,${long.toString("base64")}`],
    ["a data URL within", `AAAA${"data:;base64,"}${long.toString("base64")}`],
  ])("reads what bytesFromBase64() reads: %s", (_what, text) => {
    const expected = bytesFromBase64(text);
    for (const json of [JSON.stringify(text), JSON.stringify(text).replaceAll("/", "\\/")]) {
      const bytes = read(json);
      expect(bytes === undefined).toBe(expected === undefined);
      if (bytes && expected) expect(bytes.equals(expected)).toBe(true);
    }
  });
});

describe("ValueScan", () => {
  it("finds where a value begins and ends, however little it reads at a time", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5, stringUnit: "binary" }), fc.integer({ min: 1, max: 9 }), (text, size) => {
        const bytes = Buffer.from(` :\n  ${text} ,"x"]}`);
        const scan = new ValueScan(bytes, bytes.length);
        while (!scan.goOn(size));
        expect([scan.isOver, scan.start, scan.at]).toEqual([false, 5, 5 + Buffer.byteLength(text)]);
        scan.begin();
        while (!scan.goOn(size));
        expect(bytes.toString("utf8", scan.start, scan.at)).toBe('"x"');
        scan.begin();
        while (!scan.goOn(size));
        expect(scan.isOver).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("membersInSteps()", () => {
  it("finds long ones, and pauses in between", () => {
    const long = `"${'é\\\\\\"'.repeat(60_000)}"`;
    const bytes = Buffer.from(`{"a":${long},"b":[${long},[${long}]],"c":1}`);
    expect(atOnce(membersInSteps(bytes))).toEqual(sliceMembers(bytes));
    expect([...membersInSteps(bytes)].length).toBeGreaterThan(10);
  });

  it("reads a long name and much white space a little at a time", () => {
    const [name, space] = ["é\\n".repeat(100_000), " ".repeat(300_000)];
    const bytes = Buffer.from(`${space}{${space}"${name}"${space}:${space}[1]${space},"b"${space}:2${space}}`);
    const parse = vi.spyOn(JSON, "parse");
    const steps = membersInSteps(bytes);
    let pauses = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) pauses += 1;
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length));
    parse.mockRestore();
    expect(step.value.map(({ key, start, end }) => [key, bytes.toString("utf8", start, end)])).toEqual([
      [name.replaceAll("\\n", "\n"), "[1]"],
      ["b", "2"],
    ]);
    expect(longest).toBeLessThan(70_000);
    expect(pauses).toBeGreaterThan(40);
  });
});

describe("pathInSteps()", () => {
  it("finds a value behind long ones, and pauses within those", () => {
    const json = Buffer.from(`{"long":"${"x".repeat(300_000)}","rows":[[${"0,".repeat(100_000)}0],{"c":[1,2.50]}]}`);
    const steps = pathInSteps(json, "rows.1.c.1");
    let pauses = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) pauses += 1;
    expect(pauses).toBeGreaterThan(5);
    expect(json.toString("utf8", step.value?.start, step.value?.end)).toBe("2.50");
  });

  it("pauses within a long name, and does not decode one that is longer than the wanted one can be", () => {
    const json = Buffer.from(`{"${"\\n".repeat(150_000)}":1,"a":2}`);
    const parse = vi.spyOn(JSON, "parse");
    expect([...pathInSteps(json, "a")].length).toBeGreaterThan(3);
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });
});
