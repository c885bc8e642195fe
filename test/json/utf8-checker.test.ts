import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createUtf8Checker } from "../../src/json/json-validator.js";

describe("createUtf8Checker()", () => {
  it.each([
    ["nothing", "", true],
    ["a cut 2-byte sequence", "c3", false],
    ["a cut 3-byte sequence", "e282", false],
    ["a cut 4-byte sequence", "f09f98", false],
    ["continuation bytes only", "808080", false],
    ["a lead byte after a cut sequence", "e282e282ac", false],
    ["ASCII after a cut sequence", "f09f2020", false],
    ["a lead byte that does not exist", "ff808080", false],
    ["an overlong sequence", "c080", false],
    ["a surrogate", "eda080", false],
    ["the last code point", "f48fbfbf", true],
    ["one above the last code point", "f4908080", false],
    ["a byte order mark", "efbbbf", true],
  ])("judges %s the same in all cuts", (_name, hex, expected) => {
    const bytes = Buffer.from(hex, "hex");
    for (let cuts = 0; cuts < 2 ** Math.max(0, bytes.length - 1); cuts++) {
      expect(judge(split(bytes, cuts))).toBe(expected);
    }
  });

  it.each(["e941", "e9c3", "f09f41"])("says at once that a character cannot begin with %s, in any cuts", (hex) => {
    const bytes = Buffer.from(hex, "hex");
    for (let cuts = 0; cuts < 2 ** (bytes.length - 1); cuts++) {
      const checker = createUtf8Checker();
      expect(
        split(bytes, cuts)
          .map((chunk) => checker.push(chunk))
          .at(-1),
      ).toBe(false);
    }
  });

  it("agrees with isUtf8 at random chunk borders", () => {
    const bytes = fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }).map((text) => Buffer.from(text)),
      fc.array(fc.constantFrom(0x41, 0x80, 0xbf, 0xc3, 0xe2, 0x82, 0xf0, 0x9f), { maxLength: 8 }).map(Buffer.from),
    );
    const run = fc.property(bytes, fc.nat(), (text, cuts) => {
      expect(judge(split(text, cuts))).toBe(isUtf8(text));
    });
    fc.assert(run, { seed: 20261127, numRuns: 2_000 });
  });
});

/** Cuts before byte n + 1 where bit n is set. */
function split(bytes: Uint8Array, cuts: number): Uint8Array[] {
  const borders = Array.from({ length: 30 }, (_, bit) => bit + 1).filter((at) => ((cuts >>> (at - 1)) & 1) === 1);
  const inside = [0, ...borders.filter((at) => at < bytes.length), bytes.length];
  return inside.slice(1).map((end, index) => bytes.subarray(inside[index], end));
}

function judge(chunks: readonly Uint8Array[]): boolean {
  const checker = createUtf8Checker();
  return chunks.every((chunk) => checker.push(chunk)) && checker.end();
}
