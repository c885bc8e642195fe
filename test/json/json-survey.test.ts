import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { surveyJson } from "../../src/json/json-survey.js";

const hasInexactNumber = (bytes: Uint8Array) => surveyJson(bytes).hasInexactNumber;

const EXACT = [
  "0",
  "-0",
  "0.0",
  "0e999999999999",
  "-0.000e-999999999999",
  "1.0",
  "1e2",
  "1E+2",
  "100e-2",
  "0.1",
  "0.10000000000000000000000000",
  "123456789012345",
  "9007199254740991",
  "9007199254740992",
  "9007199254740994",
  "-9007199254740992.000",
  "123456789012345680000",
  "1e21",
  "1e23",
  "1000000000000000000000000",
  "1.7976931348623157e308",
  "17976931348623157e292",
  "5e-324",
  "0.000000000000001",
  "0.1234567890123456",
  "1.7976931348623157e+308",
  `0.${"0".repeat(999)}1e1000`,
  `1${"0".repeat(1000)}e-1000`,
];

const INEXACT = [
  "9007199254740993",
  "-9007199254740993",
  "9007199254740993.0",
  "900719925474099.3e1",
  "12345678901234567890",
  "0.1000000000000000055511151231257827",
  "0.12345678901234567",
  "1e400",
  "-1e400",
  "1E400",
  "1E+400",
  "1E-400",
  "1e99999999999999999999",
  "0.1e-400",
  "1e-99999999999999999999",
  "4e-324",
  "1.7976931348623158e308",
  "3.141592653589793238",
  "9".repeat(1000),
  `1${"0".repeat(1000)}`,
  `0.${"0".repeat(1000)}1`,
];

describe("surveyJson()", () => {
  it.each([
    ["[1,2]", 0],
    ['{"a:":"b:","c":[{"d":1}]}', 3],
    ['{"a":1,"a":2,"\\u0061":3}', 3],
    ['{"a\\":":1}', 1],
  ])("counts the members of %s", (text, count) => {
    expect(surveyJson(Buffer.from(text)).memberCount).toBe(count);
  });
});

describe("hasInexactNumber()", () => {
  it.each(EXACT)("%s keeps its value", (number) => {
    expect(placesOf(number).map((json) => hasInexactNumber(Buffer.from(json)))).toEqual([false, false, false, false]);
  });

  it.each(INEXACT)("%s loses it", (number) => {
    expect(placesOf(number).map((json) => hasInexactNumber(Buffer.from(json)))).toEqual([true, true, true, true]);
  });

  it.each([
    "{}",
    '"9007199254740993"',
    '{"9007199254740993":1}',
    '["\\"9007199254740993","\\\\",1]',
    "[true,false,null]",
    "",
  ])("%j has none", (json) => {
    expect(hasInexactNumber(Buffer.from(json))).toBe(false);
  });

  it("no double that was printed is inexact", () => {
    const run = fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (double) => {
      expect(hasInexactNumber(Buffer.from(JSON.stringify(double)))).toBe(false);
      expect(hasInexactNumber(Buffer.from(double.toExponential()))).toBe(false);
    });
    fc.assert(run, { seed: 20261127, numRuns: 2_000 });
  });

  it("agrees with exact arithmetic on decimals near the limit of a double", () => {
    const run = fc.property(
      fc.bigInt({ min: 10n ** 13n, max: 10n ** 19n }),
      fc.integer({ min: -20, max: 20 }),
      (n, e) => {
        const kept = fractionFrom(String(Number(`${n}e${e}`)));
        const written = fractionFrom(`${n}e${e}`);
        const isSame = kept.top * written.bottom === written.top * kept.bottom;
        expect(hasInexactNumber(Buffer.from(`${n}e${e}`))).toBe(!isSame);
      },
    );
    fc.assert(run, { seed: 20261127, numRuns: 1_000 });
  });

  it("reads a million digits", () => {
    const digits = `1${"0".repeat(999_998)}1`;
    expect(hasInexactNumber(Buffer.from(`[${digits},0.${digits}]`))).toBe(true);
    expect(hasInexactNumber(Buffer.from(`[0.${"0".repeat(500_000)}${"1".padEnd(500_000, "0")}e500001]`))).toBe(false);
  });
});

function placesOf(number: string): string[] {
  return [number, `[0,${number}]`, `{"a":{"b":${number}},"c":1}`, ` [ "x" , ${number} ] `];
}

function fractionFrom(text: string): { top: bigint; bottom: bigint } {
  const [mantissa = "", power = "0"] = text.split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const exponent = Number(power) - fraction.length;
  const scale = 10n ** BigInt(Math.abs(exponent));
  const digits = BigInt(whole + fraction);
  return exponent < 0 ? { top: digits, bottom: scale } : { top: digits * scale, bottom: 1n };
}
