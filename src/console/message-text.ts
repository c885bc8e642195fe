import { visibleLines, visibleText } from "./text.js";

/** A message of HTTP as people read it: its first line, its header fields, and its body where there is one. Pure. */
export function messageText(
  first: string,
  headers: ReadonlyArray<{ readonly name?: string; readonly value?: string }>,
  body: string,
): string {
  const lines = [first, ...headers.map(({ name = "", value = "" }) => `${name}: ${value}`)];
  return `${lines.map(visibleText).join("\n")}${body === "" ? "" : `\n\n${visibleLines(body)}`}`;
}
