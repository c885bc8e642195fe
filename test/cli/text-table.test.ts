import { describe, expect, it } from "vitest";
import { printable, printableLines, textTable } from "../../src/cli/text-table.js";

const ESCAPES = "\u001b[31m\u009b2J\u202e\u200b";
const SHOWN = "\\u{1b}[31m\\u{9b}2J\\u{202e}\\u{200b}";

describe("text for a terminal", () => {
  it("moves no cursor, in a table or in lines", () => {
    expect(printable(`a\n${ESCAPES}é`)).toBe(`a\\u{a}${SHOWN}é`);
    expect(printableLines(`a\n\t${ESCAPES}\r\né\r`)).toBe(`a\n\t${SHOWN}\r\né\r`);
    expect(textTable(["NAME"], [[ESCAPES]])).toBe(`NAME\n${SHOWN}`);
  });
});
