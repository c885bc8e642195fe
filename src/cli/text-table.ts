import { printable } from "./terminal-text.js";

/** Columns under their headings, two spaces apart, without spaces at the end of a line. */
export function textTable(headings: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  const lines = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) => padded(line, widths)).join("\n");
}

/** Names and values in two columns. */
export function textFields(fields: ReadonlyArray<readonly [name: string, value: string]>): string {
  const width = Math.max(0, ...fields.map(([name]) => name.length));
  return fields.map(([name, value]) => padded([name, printable(value)], [width, 0])).join("\n");
}

function padded(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join("  ")
    .trimEnd();
}
