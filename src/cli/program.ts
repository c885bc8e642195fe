import { Command, CommanderError } from "commander";
import { packageVersion } from "../lib/package-version.js";
import { exitCodeFrom, writeOutput } from "./command.js";

/**
 * Runs one command line, without the program's name, and resolves to the exit code: 0 done, 1 the operation failed,
 * 2 the usage or the configuration is wrong. Errors are on standard error.
 */
export async function runCommand(argv: readonly string[]): Promise<number> {
  try {
    const program = await createProgram(argv[0]);
    await program.parseAsync(argv, { from: "user" });
    return 0;
  } catch (error) {
    // Help is no failure; anything else that commander throws is wrong usage, and it has said so.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return exitCodeFrom(error);
  }
}

/** The commands, in the order of the help. */
const COMMANDS = new Map<string, () => Promise<(program: Command) => void>>([
  ["serve", async () => (await import("./serve.js")).addServe],
  ["demo", async () => (await import("./demo.js")).addDemo],
  ["app", async () => (await import("./app.js")).addApp],
  ["provider", async () => (await import("./provider.js")).addProvider],
  ["client", async () => (await import("./client.js")).addClient],
  ["connection", async () => (await import("./connection.js")).addConnection],
  ["token", async () => (await import("./token.js")).addToken],
  ["webhook", async () => (await import("./webhook.js")).addWebhook],
  ["call", async () => (await import("./call.js")).addCall],
  ["calls", async () => (await import("./calls.js")).addCalls],
  ["audit", async () => (await import("./audit.js")).addAudit],
  ["key", async () => (await import("./key.js")).addKey],
  ["db", async () => (await import("./db.js")).addDb],
  ["config", async () => (await import("./config.js")).addConfig],
]);

/**
 * The command that the line begins with, with its options and help; all of them where it begins with none, as a line
 * that asks for help does. A command line takes longer to load than to run, so nothing is loaded that it does not name.
 */
async function createProgram(name = ""): Promise<Command> {
  const program = new Command("relay")
    .description("Performs API calls at OAuth providers with stored tokens that callers never see.")
    .version(packageVersion())
    .exitOverride()
    .configureOutput({ writeOut: writeOutput })
    .showHelpAfterError("Run 'relay --help' for the commands.")
    .addHelpText("after", HELP);
  const named = COMMANDS.get(name);
  for (const load of named === undefined ? COMMANDS.values() : [named]) (await load())(program);
  return program;
}

const HELP = `
Exit codes: 0 done, 1 the operation failed, 2 the usage or the configuration is wrong.
Settings come from RELAY_ variables: 'relay serve --help' lists them.

Example:
  $ relay app create "My application"`;
