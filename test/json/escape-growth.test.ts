import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapeGrowth } from "../../src/json/text-slices.js";
import { bytesOf } from "../../src/lib/chunks.js";
import { atOnce } from "../../src/lib/turns.js";

const growthOf = (text: string) => atOnce(escapeGrowth(bytesOf(Buffer.from(text))));
const writtenGrowth = (text: string) => Buffer.byteLength(JSON.stringify(text)) - 2 - Buffer.byteLength(text);

describe("escapeGrowth()", () => {
  it("is what JSON.stringify() adds to each character", () => {
    for (let code = 0; code < 0x300; code++) {
      const text = `aaaaaaaaa${String.fromCharCode(code)}b`;
      expect(growthOf(text), code.toString(16)).toBe(writtenGrowth(text));
    }
  });

  it("is what JSON.stringify() adds to any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "binary-ascii" }), (text, ascii) => {
        const long = `${text}${ascii.repeat(3)}`.repeat(20).toWellFormed();
        expect(growthOf(long)).toBe(writtenGrowth(long));
      }),
      { seed: 20261128, numRuns: 300 },
    );
  });

  it("goes over slices", () => {
    const text = '\u0001"☕\n'.repeat(50_000);
    expect(growthOf(text)).toBe(writtenGrowth(text));
  });
});
