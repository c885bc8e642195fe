import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { iconTypeOf, iconUriOf, parseIcon } from "../../src/applications/icon.js";
import { JPEG, pngChunk, pngOf, WEBP, WEBP_LOSSLESS, WEBP_WITH_ALPHA } from "../support/pictures.js";

const MARKUP = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/><script>alert(1)</script>');
const PNG = pngOf(3, 2);
const GIF = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

/** Puts bytes in place of others. */
function changed(file: Buffer, at: number, bytes: readonly number[]): Buffer {
  const copy = Buffer.from(file);
  copy.set(bytes, at);
  return copy;
}

/** A WebP file of these chunks, with the length that it says. */
function webpOf(...chunks: ReadonlyArray<readonly [name: string, data: Buffer]>): Buffer {
  const parts = chunks.map(([name, data]) => {
    const head = Buffer.from(`${name}\0\0\0\0`, "latin1");
    head.writeUInt32LE(data.length, 4);
    return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
  });
  const head = Buffer.from("RIFF\0\0\0\0WEBP", "latin1");
  const file = Buffer.concat([head, ...parts]);
  file.writeUInt32LE(file.length - 8, 4);
  return file;
}

const CUT = "is cut short, damaged, or has data after the picture";
const NO_PICTURE = "must be a PNG, JPEG or WebP picture";
const TOO_LARGE = "must be at most 1024 pixels wide and high";

describe("parseIcon()", () => {
  it.each([
    ["image/png", PNG],
    ["image/png", pngOf(1024, 1024)],
    ["image/png", pngOf(3, 2, [pngChunk("tEXt", MARKUP)])],
    ["image/jpeg", JPEG],
    ["image/webp", WEBP],
    ["image/webp", WEBP_WITH_ALPHA],
    ["image/webp", WEBP_LOSSLESS],
  ])("takes a picture of the type %s, and tells it by its bytes", (type, bytes) => {
    expect(parseIcon(bytes)).toEqual({ value: bytes });
    expect(iconUriOf(bytes)).toBe(`data:${type};base64,${bytes.toString("base64")}`);
  });

  it("takes nothing for none", () => {
    expect(parseIcon(new Uint8Array(0))).toEqual({ value: new Uint8Array(0) });
    expect(iconUriOf(new Uint8Array(0))).toBeUndefined();
  });

  it.each([
    ["an SVG document", MARKUP, NO_PICTURE],
    ["a GIF", GIF, NO_PICTURE],
    ["a page", Buffer.from("<!doctype html><title>x</title>"), NO_PICTURE],
    ["a signature that lines were converted in", changed(PNG, 4, [0x0a, 0x0a]), NO_PICTURE],
    ["a signature alone", PNG.subarray(0, 8), NO_PICTURE],
    ["RIFF that is no WebP", changed(WEBP, 8, [0x57, 0x41, 0x56, 0x45]), NO_PICTURE],
    ["a PNG with markup behind it", Buffer.concat([PNG, MARKUP]), CUT],
    ["a JPEG with markup behind it", Buffer.concat([JPEG, MARKUP]), CUT],
    ["a WebP with markup behind it", Buffer.concat([WEBP, MARKUP]), CUT],
    ["a WebP with a chunk of markup that does not end", changed(WEBP, 16, [0xff, 0xff, 0, 0]), CUT],
    ["a PNG that ends early", PNG.subarray(0, -5), CUT],
    ["a JPEG that ends early", JPEG.subarray(0, -2), CUT],
    ["a WebP that ends early", WEBP.subarray(0, -2), CUT],
    ["a PNG that begins with another chunk", changed(PNG, 12, [0x49, 0x48, 0x44, 0x53]), CUT],
    ["a PNG without a picture", Buffer.concat([PNG.subarray(0, 33), pngChunk("IEND")]), CUT],
    ["a PNG with a chunk that leads out of it", changed(PNG, 33, [0xff, 0xff, 0xff, 0xff]), CUT],
    ["a JPEG without a frame", Buffer.from("ffd8ffe000104a46494600010100000100010000ffd9", "hex"), CUT],
    ["a JPEG with a segment that leads out of it", changed(JPEG, 4, [0xff, 0xff]), CUT],
    ["a WebP without a picture", webpOf(["EXIF", MARKUP]), CUT],
    ["a PNG that is too wide", pngOf(1025, 1), TOO_LARGE],
    ["a PNG of 4 GiB", pngOf(3, 2, [], [0xffff, 0xffff]), TOO_LARGE],
    ["a PNG without height", pngOf(3, 2, [], [3, 0]), TOO_LARGE],
    ["a JPEG that is too high", changed(JPEG, JPEG.indexOf(Buffer.from("ffc0", "hex")) + 5, [0xff, 0xff]), TOO_LARGE],
    ["a WebP that is too wide", changed(WEBP, 26, [0xff, 0x3f]), TOO_LARGE],
    ["a lossless WebP that is too high", changed(WEBP_LOSSLESS, 22, [0xff, 0xff]), TOO_LARGE],
    ["a WebP whose frame is too wide", changed(WEBP_WITH_ALPHA, 24, [0xff, 0xff]), TOO_LARGE],
    [
      "a WebP whose picture is larger than its frame",
      changed(WEBP_WITH_ALPHA, WEBP_WITH_ALPHA.indexOf("VP8 ") + 14, [0xff, 0x3f]),
      TOO_LARGE,
    ],
    ["a PNG that moves", pngOf(3, 2, [pngChunk("acTL", Buffer.alloc(8))]), "must not be animated"],
    [
      "a WebP that moves",
      webpOf(["VP8X", Buffer.from("02000000020000010000", "hex")], ["ANIM", Buffer.alloc(6)]),
      "must not be animated",
    ],
    [
      "more bytes than are kept",
      pngOf(3, 2, [pngChunk("tEXt", Buffer.alloc(16 * 1024))]),
      "must have at most 16384 bytes",
    ],
  ])("refuses %s", (_what, bytes, problem) => {
    expect(parseIcon(bytes)).toEqual({ problem });
  });

  it("answers to every cut and every changed byte, and what it takes has a type", () => {
    const files = fc.constantFrom(PNG, JPEG, WEBP, WEBP_WITH_ALPHA, WEBP_LOSSLESS);
    fc.assert(
      fc.property(files, fc.nat(), fc.nat(255), fc.nat(), (file, at, byte, cut) => {
        const bytes = changed(file, at % file.length, [byte]).subarray(0, file.length - (cut % 4));
        const parsed = parseIcon(bytes);
        if ("value" in parsed) expect(iconTypeOf(parsed.value)).toMatch(/^image\/(png|jpeg|webp)$/);
        else expect(parsed.problem).not.toBe("");
      }),
      { numRuns: 2000 },
    );
  });
});
