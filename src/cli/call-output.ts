import { STATUS_CODES } from "node:http";
import type { ResultRow } from "../../gen/relay/v1/relay_pb.js";
import { isTerminal, writeLine, writeNote, writeOutput } from "./output.js";
import { printable, printableLines } from "./terminal-text.js";

/** How a row is printed. */
export interface RowOutputOptions {
  /** Status line and headers on standard output, in front of the body. */
  readonly include: boolean;
}

/**
 * Prints the provider's answer as an HTTP client would: status line and headers on standard error, the body's own bytes
 * on standard output. JSON is indented for a person at a terminal. Nothing when no provider answered.
 */
export function writeAnswer(row: ResultRow, { include }: RowOutputOptions): void {
  if (row.body === undefined) return;
  const write = include ? writeLine : writeNote;
  write(`HTTP ${row.statusCode} ${STATUS_CODES[row.statusCode] ?? ""}`.trimEnd());
  for (const [name, value] of Object.entries(row.headers)) write(printable(`${name}: ${value}`));
  write("");
  if (isTerminal()) writeForPerson(row.contentType, row.body);
  else writeOutput(row.body);
  if (row.possiblyTruncated) writeNote("The provider gave this answer no length: its end may be missing.");
}

/** What is neither JSON nor text would only disturb the terminal, and so would what moves its cursor. */
function writeForPerson(contentType: string, body: Uint8Array): void {
  const text = Buffer.from(body).toString();
  const isJson = /[/+]json$/.test(contentType);
  if (isJson || contentType.startsWith("text/")) writeLine(printableLines(isJson ? indented(text) : text));
  else writeNote(`(${body.length} bytes of ${contentType || "unknown type"}; redirect standard output to keep them)`);
}

/** Only for reading: numbers are printed as JavaScript knows them. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    // Announced as JSON but not valid: as it is.
    return text;
  }
}
