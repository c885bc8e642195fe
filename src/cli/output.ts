/** Writes one line of text for a person, or for a program that reads lines. */
export function writeLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Writes one line that is no result: an error, a note, the fields of an answer. */
export function writeNote(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Writes bytes as they are. */
export function writeBytes(bytes: Uint8Array): void {
  process.stdout.write(bytes);
}

/** Writes one JSON value: on one line for programs, indented for a person at a terminal. */
export function writeJson(value: unknown): void {
  writeLine(JSON.stringify(value, undefined, isTerminal() ? 2 : undefined));
}

/** Whether a person sees standard output. */
export function isTerminal(): boolean {
  return process.stdout.isTTY === true;
}

/** Lets a reader such as `head` close the pipe early: nobody is left to write for, so the process ends. */
export function endWithReader(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit(0);
  });
}
