import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createPieceFilter, PART_BYTES } from "../../src/redaction/piece-filter.js";

const LONG = "bench-token-bench-token".replaceAll("-", "_");

function filterFor(...texts: string[]) {
  return createPieceFilter(texts.map((text) => Buffer.from(text)));
}

describe("createPieceFilter()", () => {
  it.each([8, 9, 12, 18, 19, 20, 21, 100])("finds a text of %i characters wherever it stands", (length) => {
    const text = Array.from({ length }, (_, at) => String.fromCharCode(0x41 + (at % 26), 0x61 + at / 26)).join("");
    const cut = text.slice(0, length);
    const filter = filterFor(cut, `${LONG}${LONG}`);
    for (let lead = 0; lead < 40; lead++) {
      for (const tail of ["", ".", "....................."]) {
        const input = `${".".repeat(lead)}${cut}${tail}`;
        expect(filter.mayBeInText(input), input).toBe(true);
        for (const offset of [0, 1, 2, 3]) {
          const bytes = Buffer.from(" ".repeat(offset) + input).subarray(offset);
          expect(filter.mayBeInBytes(bytes), `${offset} ${input}`).toBe(true);
        }
      }
    }
  });

  it("finds each of many texts", () => {
    const texts = Array.from({ length: 60 }, (_, at) => `${at}_${LONG}_${at * at}`);
    const filter = filterFor(...texts);
    for (const text of texts) {
      expect(filter.mayBeInText(`  ${text}`)).toBe(true);
      expect(filter.mayBeInBytes(Buffer.from(`  ${text}`))).toBe(true);
    }
  });

  it.each([8, 9, 16, 19, 40])(
    "finds a text of %i characters wherever it stands around 64 KiB, and at the end",
    (length) => {
      const text = `${LONG}${LONG}`.slice(0, length);
      const filter = filterFor(text, ...Array.from({ length: 12 }, (_, at) => `${at}_${LONG}`));
      const input = Buffer.alloc(2 * 65536 + 500, ".");
      const borders = [PART_BYTES, 65536, 2 * 65536, input.length].flatMap((border) =>
        Array.from({ length: 100 }, (_, before) => border - before),
      );
      expect(filter.mayBeInBytes(input)).toBe(false);
      for (const at of borders) {
        if (at + length > input.length) continue;
        input.write(text, at, "latin1");
        expect(filter.mayBeInBytes(input), `${at}`).toBe(true);
        input.fill(".", at, at + length);
      }
      expect(filter.mayBeInBytes(input)).toBe(false);
    },
  );

  it("looks for the texts of its own, whatever was looked for before", () => {
    const [one, other] = [filterFor(`one_${LONG}`), filterFor("another_text_that_is_long")];
    const input = Buffer.from(`  another_text_that_is_long  `);
    for (let turn = 0; turn < 3; turn++) {
      expect(one.mayBeInBytes(input)).toBe(false);
      expect(other.mayBeInBytes(input)).toBe(true);
    }
    expect(other.mayBeInBytes(Buffer.from("another_text"))).toBe(true);
    expect(other.mayBeInBytes(Buffer.from("ano"))).toBe(false);
    expect(other.mayBeInBytes(Buffer.alloc(0))).toBe(false);
  });

  it("tells most inputs at once", () => {
    const filter = filterFor("gho_16C7e42F292c6912E7710c838347Ae178B4a", "Z2hvXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4Mzgz");
    const input = JSON.stringify(
      Array.from({ length: 999 }, (_, id) => ({ id, name: `name ${id}`, tags: ["a", null] })),
    );
    expect(filter.mayBeInText(input)).toBe(false);
    expect(filter.mayBeInBytes(Buffer.alloc(1000))).toBe(false);
    expect(filter.mayBeInText("")).toBe(false);
    expect(filter.mayBeInText("gho_16C7e42F292c6912E7710c838347Ae178B4")).toBe(false);
  });

  it("misses nothing behind characters of any width", () => {
    const filter = filterFor(LONG);
    for (let lead = 0; lead < 20; lead++) {
      expect(filter.mayBeInText(`${"\u{1f600}é".repeat(lead)}${LONG}`)).toBe(true);
      expect(filter.mayBeInBytes(Buffer.from(`${"é\0".repeat(lead)}${LONG}`))).toBe(true);
    }
  });

  it("finds each of more texts than its table has room for", () => {
    const texts = Array.from({ length: 3_000 }, (_, at) => `${at}_${LONG}_${at * at}`);
    const filter = filterFor(...texts);
    for (const text of texts) expect(filter.mayBeInBytes(Buffer.from(` ${text}`))).toBe(true);
  });

  it("finds each of more texts than it can put into its table at once", () => {
    const texts = Array.from({ length: 1_000 }, (_, at) => createHash("sha256").update(`${at}`).digest("hex"));
    const filter = filterFor(...texts);
    for (const text of texts) expect(filter.mayBeInBytes(Buffer.from(` ${text}`))).toBe(true);
  });

  it("finds a text in either alphabet of base64, and in both at once", () => {
    const filter = filterFor("ab+/cd+/ef+/");
    for (const text of ["ab+/cd+/ef+/", "ab-_cd-_ef-_", "ab-/cd-/ef-/", "ab+_cd+_ef+_", "ab+_cd-/ef-_"]) {
      expect(filter.mayBeInText(text), text).toBe(true);
    }
    expect(filter.mayBeInText("ab..cd..ef..")).toBe(false);
  });

  it.each([
    ["\\u0065", "e"],
    ["%62", "b"],
    ["%2562", "b"],
    ["\\\\u0062", "b"],
    ["b\nb", "bb"],
    ["b\r\n  b", "bb"],
    ["b\\n\\tb", "bb"],
    ["b%0D%0Ab", "bb"],
  ])("finds a text with %j for %j in it, wherever it stands", (spelled, letters) => {
    const filter = filterFor(`abcdefgh${letters}ijklmnopq`);
    for (let lead = 0; lead < 50; lead++) {
      const text = `${".".repeat(lead)}abcdefgh${spelled}ijklmnopq`;
      expect(filter.mayBeInText(text), text).toBe(true);
    }
  });

  it.each([12, 16, 24, 39, 40, 60])(
    "finds a text of %i characters with any two of them escaped, or lines broken",
    (length) => {
      const text = `${LONG}${LONG}${LONG}`.replaceAll("_", "x").slice(0, length);
      const filter = filterFor(text);
      const unicode = (one: string) => `\\u00${one.charCodeAt(0).toString(16)}`;
      const percent = (one: string) => `%${one.charCodeAt(0).toString(16)}`;
      const broken = (one: string) => `\r\n   ${one}`;
      for (const spell of [unicode, percent, broken]) {
        for (let first = 0; first < length; first++) {
          for (let second = first; second < length; second++) {
            const spelled = Array.from(text, (one, at) => (at === first || at === second ? spell(one) : one)).join("");
            expect(filter.mayBeInText(`. a ${spelled} .`), spelled).toBe(true);
          }
        }
      }
    },
  );

  it.each(["\\\\u005cn", "%5C", "%\\u0034", "\\u00\\u0034", "\\\\\\u00750041"])(
    "gives %j to be read closely, wherever it stands",
    (text) => {
      const filter = filterFor(LONG);
      for (let lead = 1; lead < 50; lead++) {
        filter.load(Buffer.from(`${".".repeat(lead)}${text}......`));
        const { from, to } = filter.next(0);
        expect(from).toBeLessThanOrEqual(lead);
        expect(to).toBeGreaterThan(lead);
      }
    },
  );

  it("passes over what is no letter of a text, and the ends of lines that do not break base64", () => {
    expect(filterFor(LONG).mayBeInText('"<a href=\\"x\\">\\u00e9\\u4e2d\\t.\\n.%20%3A. %zz \\u00zz ......"')).toBe(
      false,
    );
    expect(filterFor(LONG).mayBeInText('{\n  "a": "b",\r\n  "c": [\n  ]\n}\n\n')).toBe(false);
  });
});
