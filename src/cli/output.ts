import { printableJson, printableLines } from "./terminal-text.js";

/** Writes text or bytes, the result of a command, as they are. */
export function writeOutput(output: string | Uint8Array): void {
  const { stdout } = process;
  // Not at start: `relay serve` logs to the descriptor itself, and the stream would make it non-blocking.
  if (stdout.listenerCount("error") === 0) stdout.on("error", endWithReader);
  stdout.write(output);
}

/** Writes lines of text for a person, or for a program that reads lines. */
export function writeLine(text: string): void {
  writeOutput(`${printableLines(text)}\n`);
}

/** Writes one line that is no result: an error, a note, the fields of an answer. */
export function writeNote(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

/** Writes one JSON value: on one line for programs, indented for a person at a terminal. */
export function writeJson(value: unknown): void {
  writeJsonText(JSON.stringify(value, undefined, isTerminal() ? 2 : undefined));
}

/** Writes JSON that somebody else wrote; what would act on a terminal is escaped, whoever reads it. */
export function writeJsonText(json: string): void {
  writeOutput(`${printableJson(json)}\n`);
}

/** Whether a person sees standard output. */
export function isTerminal(): boolean {
  return process.stdout.isTTY === true;
}

/** A reader such as `head` may close the pipe early: nobody is left to write for, so the process ends. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
}
