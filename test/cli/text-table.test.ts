import { describe, expect, it } from "vitest";
import { printable, printableJson, printableLines, textTable } from "../../src/cli/command.js";

const ESCAPES = "\u001b[31m\u009b2J\u202e\u200b";
const SHOWN = "\\u{1b}[31m\\u{9b}2J\\u{202e}\\u{200b}";

describe("text for a terminal", () => {
  it("moves no cursor, in a table or in lines", () => {
    expect(printable(`a\n${ESCAPES}é`)).toBe(`a\\u{a}${SHOWN}é`);
    expect(printableLines(`a\n\t${ESCAPES}\r\né\r`)).toBe(`a\n\t${SHOWN}\r\né\r`);
    expect(textTable(["NAME"], [[ESCAPES]])).toBe(`NAME\n${SHOWN}`);
  });

  it("moves no cursor in JSON, which says the same", () => {
    const value = { [ESCAPES]: "\u009b2J\u007f\u0085\u202e\u2066\u2028\u00ad\ufeff\u{e0001}é😀\n\t" };
    for (const indent of [undefined, 2]) {
      const text = printableJson(JSON.stringify(value, undefined, indent));
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}\p{Cc}]/u);
      expect(JSON.parse(text)).toEqual(value);
      expect(text).toContain("\\u009b2J\\u007f\\u0085\\u202e\\u2066\\u2028\\u00ad\\ufeff\\udb40\\udc01é😀");
    }
  });
});
