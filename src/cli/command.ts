import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { type Command, InvalidArgumentError } from "commander";
import { parseInteger } from "../config/setting-list.js";
import { type FailureCode, operatorExitCode } from "../lib/process.js";

/** What the help of a command says. */
interface CommandHelp {
  /** `create <name>`: the word and its arguments. */
  readonly usage: string;
  /** One sentence: what the command does. */
  readonly about: string;
  /** Complete command lines. */
  readonly examples: readonly string[];
  /** Shown after the options: what does not fit into one sentence. */
  readonly more?: string;
}

/** Adds a command that does something: with `--json`, an example in its help, and a hint after wrong usage. */
export function addCommand(parent: Command, help: CommandHelp): Command {
  return addHelp(parent, help).option("--json", "print JSON, for programs");
}

/** Adds a command that only has further commands. */
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

/** For options that may stand several times. */
export function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

/** For options that are a whole number. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = parseInteger(text, min, max);
    if (number !== undefined) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** Enough for a list of commands. */
function firstClause(text: string): string {
  return text.split(/[.:;,] /, 1)[0]?.replace(/\.$/, "") ?? text;
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** A failure of a command. `message` is for the person at the terminal; empty when everything has been said. */
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

/** The command line, what was piped in, or the configuration is wrong. */
export function usageError(message: string, cause?: unknown): ExitError {
  return new ExitError(2, message, { cause });
}

/** Tells the person at the terminal what failed, and answers with the exit code. */
export function exitCodeFrom(error: unknown): FailureCode {
  if (error instanceof ExitError) {
    if (error.message !== "") writeNote(error.message);
    return error.exitCode;
  }
  const exitCode = operatorExitCode(error);
  writeNote(exitCode === undefined ? faultText(error) : (error as Error).message);
  return exitCode ?? 1;
}

/** A fault of ours or of the system. Its text may quote input, so only class and code are told. */
function faultText(error: unknown): string {
  const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : { name: typeof error, code: "" };
  return `The command failed (${[name, code].filter(Boolean).join(" ")}). Please report this.`;
}

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

/** Writes the result of a command: JSON where `--json` is given, else what a person reads. */
export function writeResult({ json }: { readonly json?: boolean }, value: unknown, text: string): void {
  if (json) writeJson(value);
  else writeLine(text);
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

/** Reads standard input to its end; more than `maxBytes` is refused. */
export function readStandardInput(maxBytes: number): Promise<Buffer> {
  return readAll(process.stdin, "standard input", maxBytes);
}

/** Reads a file; more than `maxBytes` is refused. */
export function readInputFile(path: string, maxBytes: number): Promise<Buffer> {
  return readAll(createReadStream(path), path, maxBytes);
}

/** Standard input piece by piece, for a command that works on it as it comes. */
export function standardInput(): AsyncGenerator<Buffer> {
  return piecesOf(process.stdin, "standard input");
}

async function readAll(stream: Readable, name: string, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of piecesOf(stream, name)) {
    size += chunk.length;
    if (size > maxBytes) throw usageError(`${name} holds more than ${maxBytes} bytes; give what the command expects.`);
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

/** Holds an application's private key for `relay call`. */
export const PRIVATE_KEY_VARIABLE = "RELAY_PRIVATE_KEY";

/** A private key is far shorter. In bytes. */
const MAX_BYTES = 4096;

/**
 * The application's private key, from a file or else the environment; undefined when neither is given. Never an
 * argument: those are in the shell's history and in every user's list of processes.
 */
export async function readPrivateKey(file: string | undefined): Promise<string | undefined> {
  const text = file === undefined ? process.env[PRIVATE_KEY_VARIABLE] : String(await readInputFile(file, MAX_BYTES));
  const key = text?.trim() ?? "";
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  if (file === undefined && key === "") return undefined;
  throw usageError(`${file ?? PRIVATE_KEY_VARIABLE} does not hold a private key: one word of printable characters.`);
}

/** Often enough for the eye; milliseconds. */
const EVERY_MS = 100;

/**
 * Does slow work, and says meanwhile how far it is: on a terminal in one line of standard error, which is written over and
 * taken away at the end; in a pipe, a file or a log not at all.
 *
 * @param text what is shown first; empty for nothing.
 * @param work is given what shows another text.
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

/** Those that end a command unless it says otherwise. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Does work that makes temporary files. A signal ends the process as it would have without them (a shell reports 128 and its
 * number), once they are removed.
 *
 * @param remove called for a signal alone.
 */
export async function cleaningUp<Result>(
  remove: () => void | Promise<void>,
  work: () => Promise<Result>,
): Promise<Result> {
  const end = async (signal: NodeJS.Signals) => {
    try {
      await remove();
    } finally {
      for (const each of SIGNALS) process.off(each, end);
      // Not process.exit(), which waits for threads.
      process.kill(process.pid, signal);
    }
  };
  for (const signal of SIGNALS) process.on(signal, end);
  return work().finally(() => {
    for (const signal of SIGNALS) process.off(signal, end);
  });
}
