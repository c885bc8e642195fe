/**
 * Text from outside as it is safe to look at: control characters and those that turn or hide others are shown as their
 * code, as on the command line. It never becomes markup in any case.
 */
export function visibleText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same of a text of several lines, which stay lines. */
export function visibleLines(text: string): string {
  return text.split(/\r?\n/).map(visibleText).join("\n");
}
