import type { Locator } from "playwright-core";

/** A line of the accessibility tree. */
const LINE = /^( *)- '?(\w+)(?: "((?:[^"\\]|\\.)*)")?(?:.*\[level=(\d)\])?/;
/** What a view is made of; what stands in it changes with each call. */
const KEPT = new Set(
  "main navigation search form region heading table columnheader textbox combobox checkbox radio button link".split(
    " ",
  ),
);

/** Landmarks, headings, columns, fields, buttons and navigation with their names, one a line. */
export async function outlineOf(part: Locator): Promise<string> {
  const above: Array<{ readonly indent: number; readonly role: string }> = [];
  const lines: string[] = [];
  for (const line of (await part.ariaSnapshot()).split("\n")) {
    const [, spaces, role = "", name, level = ""] = LINE.exec(line) ?? [];
    if (spaces === undefined) continue;
    while ((above.at(-1)?.indent ?? -1) >= spaces.length) above.pop();
    // Other links lead to one of many things that are listed.
    if (!KEPT.has(role) || (role === "link" && !above.some((each) => each.role === "navigation"))) continue;
    lines.push(`${"  ".repeat(above.length)}${role}${level}${name === undefined ? "" : ` ${name}`}`);
    above.push({ indent: spaces.length, role });
  }
  return lines.join("\n");
}
