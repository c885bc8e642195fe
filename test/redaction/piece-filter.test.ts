import { describe, expect, it } from "vitest";
import { createPieceFilter } from "../../src/redaction/piece-filter.js";

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
      const borders = [65536, 2 * 65536, input.length].flatMap((border) =>
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
    filter.load(Buffer.from(input));
    let places = 0;
    for (let at = filter.next(0); at !== -1; at = filter.next(at + 1)) places++;
    expect(places / (input.length / 16)).toBeLessThan(1 / 50);
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

  it("finds a text in either alphabet of base64, and in both at once", () => {
    const filter = filterFor("ab+/cd+/efgh");
    for (const text of ["ab+/cd+/efgh", "ab-_cd-_efgh", "ab+_cd-/efgh"]) expect(filter.mayBeInText(text)).toBe(true);
    expect(filter.mayBeInText("ab..cd..efgh")).toBe(false);
  });

  it.each(["\\u0065", "%62", "\\\\", "%5C", "%%", "a\nb", "a\rb", "+\n  b", "_\r\nb", "a\\nb", "a%0Ab"])(
    "gives the place of %j, wherever it stands",
    (text) => {
      const filter = filterFor(LONG);
      for (let lead = 1; lead < 50; lead++) {
        const place = lead + text.search(/[\\%\r\n]/);
        filter.load(Buffer.from(`${".".repeat(lead)}${text}......`));
        for (const from of [0, lead, place]) expect(filter.next(from)).toBe(place);
        expect(filter.next(place + 2)).toBe(-1);
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
