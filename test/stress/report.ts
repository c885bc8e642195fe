/** One line of the report. */
export interface Row {
  readonly what: string;
  readonly value: string;
  /** What must hold; undefined for a figure that is only told. */
  readonly holds: boolean | undefined;
}

/** A figure. */
export function told(what: string, value: string | number | undefined): Row {
  return { what, value: value === undefined ? "not known here" : String(value), holds: undefined };
}

/** A figure that must be as said. */
export function held(what: string, value: string | number, holds: boolean): Row {
  return { what, value: String(value), holds };
}

/** One scenario's rows as a table. */
export function tableFrom(title: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ what }) => what.length));
  const lines = rows.map(({ what, value, holds }) => `  ${what.padEnd(width)}  ${value}${markOf(holds)}`);
  return `${title}\n${lines.join("\n")}\n`;
}

function markOf(holds: boolean | undefined): string {
  if (holds === undefined) return "";
  return holds ? "  ok" : "  FAILED";
}
