import type { Command } from "commander";
import { type FailureCode, operatorExitCode } from "../lib/exit-codes.js";
import { writeNote } from "./output.js";

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
  const command = addGroup(parent, help);
  return command.option("--json", "print JSON, for programs");
}

/** Adds a command that only has further commands. */
export function addGroup(parent: Command, { usage, about, examples, more }: CommandHelp): Command {
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
