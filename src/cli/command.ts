import type { Command } from "commander";

/** What the help of a command says. */
export interface CommandHelp {
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
