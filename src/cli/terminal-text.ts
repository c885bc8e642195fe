/** Control characters, and what turns, hides or ends lines: C0, DEL, C1, formats such as bidirectional ones. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** The same but for the white space of JSON; what else of C0 stands in valid JSON is escaped already. */
const UNSAFE_IN_JSON = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Foreign text may hold anything, also what moves a terminal's cursor: such characters are shown as their code. */
export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same of a text of several lines, which may be indented with tabs. */
export function printableLines(text: string): string {
  return text.replace(/[^\t\r\n]+/g, printable);
}

/** JSON that says the same and is safe at a terminal: such characters stand in strings alone, where JSON has escapes. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}
