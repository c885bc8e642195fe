import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { type Command, InvalidArgumentError } from "commander";
import { parseInteger } from "../config/setting-list.js";
import { type FailureCode, operatorExitCode, SAME_KEYPRESS_MS } from "../lib/process.js";

/** Help texts of a command. */
interface CommandHelp {
  /** The command's name and arguments, such as `create <name>`. */
  readonly usage: string;
  /** One sentence: what the command does. */
  readonly about: string;
  /** Complete command lines. */
  readonly examples: readonly string[];
  /** Details, shown after the options. */
  readonly more?: string;
  /** Options that every call of the command must have, since they name what it is about. */
  readonly names?: ReadonlyArray<keyof typeof NAMES>;
}

const NAMES = {
  app: ["--app <public-key>", "the application's public key"],
  user: ["--user <id>", "the user's id in the application; ids must match exactly"],
  provider: ["--provider <name>", "the provider's name or alias"],
} as const;

/** Adds a command that does something, with `--json`, examples in its help, and a hint after wrong usage. */
export function addCommand(parent: Command, help: CommandHelp): Command {
  const command = addHelp(parent, help).option("--json", "print JSON, for programs");
  for (const name of help.names ?? []) {
    const [flags, about] = NAMES[name];
    command.requiredOption(flags, about);
  }
  return command;
}

/** Adds a command that only groups subcommands. */
export function addGroup(parent: Command, help: CommandHelp & { readonly commands: readonly AddCommand[] }): void {
  const group = addHelp(parent, help);
  for (const add of help.commands) add(group);
}

type AddCommand = (group: Command) => void;

function addHelp(parent: Command, { usage, about, examples, more }: CommandHelp): Command {
  const command = parent.command(usage).description(about).summary(firstClause(about));
  const title = examples.length === 1 ? "Example" : "Examples";
  const text = [`${title}:`, ...examples.map((line) => `  $ ${line}`)];
  if (more !== undefined) text.push("", more);
  command.addHelpText("after", `\n${text.join("\n")}`);
  return command.showHelpAfterError(`Run '${pathOf(command)} --help' for usage.`);
}

/** Parser for options that may be repeated. */
export function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

/** Parser for options that are a whole number. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = parseInteger(text, min, max);
    if (number !== undefined) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** The first clause of a sentence: enough for a list of commands. */
function firstClause(text: string): string {
  return text.split(/[.:;,] /, 1)[0]?.replace(/\.$/, "") ?? text;
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** A failure of a command. `message` is for the person at the terminal; empty when the error was already reported. */
export class ExitError extends Error {
  readonly exitCode: FailureCode;

  constructor(exitCode: FailureCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "ExitError";
    this.exitCode = exitCode;
  }
}

/** The operation failed: not found, refused, an error row. */
export function failure(message: string, cause?: unknown): ExitError {
  return new ExitError(1, message, { cause });
}

/** The command line, standard input or the configuration is wrong. */
export function usageError(message: string, cause?: unknown): ExitError {
  return new ExitError(2, message, { cause });
}

/** Prints what failed to standard error and returns the exit code. */
export function exitCodeFrom(error: unknown): FailureCode {
  const text = isForOperator(error) ? error.message : faultText(error);
  if (text !== "") writeNote(text);
  return error instanceof ExitError ? error.exitCode : (operatorExitCode(error) ?? 1);
}

/** Whether an error's message is for the person at the terminal. */
export function isForOperator(error: unknown): error is Error {
  return error instanceof ExitError || operatorExitCode(error) !== undefined;
}

/**
 * Text for a fault of the relay or of the system. An error's message may quote input, so it shows only class and code.
 */
function faultText(error: unknown): string {
  const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : { name: typeof error, code: "" };
  return `The command failed (${[name, code].filter(Boolean).join(" ")}). Please report this.`;
}

/** Writes the result of a command, text or bytes, unchanged. */
export function writeOutput(output: string | Uint8Array): void {
  const { stdout } = process;
  // Not at start: `relay serve` logs to the descriptor itself, which accessing the stream would make non-blocking.
  if (stdout.listenerCount("error") === 0) stdout.on("error", endWithOutput);
  stdout.write(output);
}

/** Writes lines of text, for a person or for a program that reads lines. */
export function writeLine(text: string): void {
  writeOutput(`${printableLines(text)}\n`);
}

/** Writes the result of a command: as JSON with `--json`, otherwise as text. */
export function writeResult({ json }: { readonly json?: boolean }, value: unknown, text: string): void {
  if (json) writeJson(value);
  else writeLine(text);
}

/** Writes to standard error what is not a result: an error, a note, the header fields of an answer. */
export function writeNote(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

/** Writes one JSON value: on one line for programs, indented for a person at a terminal. */
export function writeJson(value: unknown): void {
  writeJsonText(JSON.stringify(value, undefined, isTerminal() ? 2 : undefined));
}

/** Writes foreign JSON text. Always escapes characters that would act on a terminal. */
export function writeJsonText(json: string): void {
  writeOutput(`${printableJson(json)}\n`);
}

/** Whether standard output is a terminal. */
export function isTerminal(): boolean {
  return process.stdout.isTTY === true;
}

/** Exits: with 0 when a reader such as `head` closes the pipe early, with 1 when the output cannot be kept. */
function endWithOutput({ code, message }: NodeJS.ErrnoException): void {
  if (code !== "EPIPE") writeNote(`Standard output: ${message}`);
  process.exit(code === "EPIPE" ? 0 : 1);
}

/**
 * Lets a command go on when its output cannot be written: a reader that is gone, such as `head`, must not end it
 * half-way. Any other error is noted once, and the exit code is 1.
 */
export function goOnWithoutOutput(): void {
  let isNoted = false;
  process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (code === "EPIPE" || isNoted) return;
    isNoted = true;
    writeNote(`Standard output: ${message}`);
    // The error of the last line may come before or after the command's own exit code.
    process.once("exit", () => {
      process.exitCode ||= 1;
    });
  });
}

/** A table with headings: columns two spaces apart, no trailing spaces. */
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

/** Control characters (C0, DEL, C1), format characters such as bidirectional marks, and line separators. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** The same without C0: of those characters, valid JSON contains only white space unescaped. */
const UNSAFE_IN_JSON = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * Foreign text with its unsafe characters, such as those that move a terminal's cursor, replaced by their code points.
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** The same for a text of several lines, which may contain tabs. */
export function printableLines(text: string): string {
  return text.replace(/[^\t\r\n]+/g, printable);
}

/** Equivalent JSON that is safe on a terminal. Unsafe characters occur only in strings, where JSON can escape them. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, (character) =>
    Array.from(
      { length: character.length },
      (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
    ).join(""),
  );
}

/** Reads standard input to its end; refuses more than `maxBytes`. */
export function readStandardInput(maxBytes: number): Promise<Buffer> {
  return readAll(process.stdin, "standard input", maxBytes);
}

/** Reads a file; refuses more than `maxBytes`. */
export function readInputFile(path: string, maxBytes: number): Promise<Buffer> {
  return readAll(createReadStream(path), path, maxBytes);
}

/** Standard input in chunks, for a command that processes it as it arrives. */
export function standardInput(): AsyncGenerator<Buffer> {
  return piecesOf(process.stdin, "standard input");
}

async function readAll(stream: Readable, name: string, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of piecesOf(stream, name)) {
    size += chunk.length;
    if (size > maxBytes)
      throw usageError(`${name} is larger than ${maxBytes} bytes, the most that this command reads.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function* piecesOf(stream: Readable, name: string): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    throw code === undefined ? error : failure(`${name} cannot be read (${code}).`, error);
  } finally {
    stream.destroy();
  }
}

/** Environment variable with an application's private key for `relay call`. */
export const PRIVATE_KEY_VARIABLE = "RELAY_PRIVATE_KEY";

/** Limit for a private key, which is far shorter. */
const MAX_BYTES = 4096;

/**
 * The application's private key from a file, or else from the environment; undefined when neither is given. Never from
 * an argument: arguments appear in the shell's history and in every user's list of processes.
 */
export async function readPrivateKey(file: string | undefined): Promise<string | undefined> {
  const text = file === undefined ? process.env[PRIVATE_KEY_VARIABLE] : String(await readInputFile(file, MAX_BYTES));
  const key = text?.trim() ?? "";
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  if (file === undefined && key === "") return undefined;
  throw usageError(
    `${file ?? PRIVATE_KEY_VARIABLE} does not contain a private key, which is one word of printable ASCII characters.`,
  );
}

/** Refresh interval of the progress line. */
const EVERY_MS = 100;

/**
 * Does slow work and shows its progress: on a terminal, in one line of standard error that is overwritten and finally
 * cleared; in a pipe, a file or a log, not at all.
 *
 * @param text the first text; empty for none.
 * @param work receives a function that changes the text.
 */
export async function withProgress<Result>(
  text: string,
  work: (show: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  const { stderr } = process;
  if (stderr.isTTY !== true) return work(() => {});
  let shownAt = Number.NEGATIVE_INFINITY;
  const show = (line: string) => {
    if (performance.now() - shownAt < EVERY_MS) return;
    shownAt = performance.now();
    stderr.write(`\r${line.slice(0, (stderr.columns || 80) - 1)}\x1b[K`);
  };
  if (text !== "") show(text);
  return work(show).finally(() => stderr.write("\r\x1b[K"));
}

/** Signals that end a command by default. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Does work that a signal must not cut short. A signal first runs `cleanUp`, then ends the process by that signal, as
 * if there had been no handler (a shell reports 128 plus its number). A second one ends it at once.
 *
 * @param cleanUp called once, only on a signal, such as to remove temporary files.
 */
export async function cleaningUp<Result>(
  cleanUp: () => void | Promise<void>,
  work: () => Promise<Result>,
): Promise<Result> {
  let firstAt: number | undefined;
  const onSignal = async (signal: NodeJS.Signals) => {
    const isFirst = firstAt === undefined;
    firstAt ??= performance.now();
    // One keypress, or the end of a terminal, may send several.
    if (!isFirst && performance.now() - firstAt < SAME_KEYPRESS_MS) return;
    try {
      if (isFirst) await cleanUp();
    } finally {
      ignoreSignals();
      // Not process.exit(), because that waits for threads.
      process.kill(process.pid, signal);
    }
  };
  const ignoreSignals = () => {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return work().finally(ignoreSignals);
}
