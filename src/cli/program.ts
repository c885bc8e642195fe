import { Command, CommanderError } from "commander";
import { packageVersion } from "../lib/process.js";
import { exitCodeFrom, writeOutput } from "./command.js";
import { loadEnvFile } from "./env-file.js";

/**
 * Runs one command line, given without the program's name, and resolves to the exit code: 0 for success, 1 when the
 * operation failed, 2 for wrong usage or configuration. Errors go to standard error. Without a command it starts a
 * relay.
 */
export async function runCommand(argv: readonly string[]): Promise<number> {
  try {
    const name = argv.find((word, at) => COMMANDS.has(word) && argv[at - 1] !== ENV_FILE);
    const program = await createProgram(name);
    const isBare = argv.length === 0 || (argv.length === 2 && argv[0] === ENV_FILE);
    await program.parseAsync(isBare ? [...argv, "start"] : argv, { from: "user" });
    return 0;
  } catch (error) {
    // Help is not a failure. Any other CommanderError is wrong usage, which commander has already reported.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return exitCodeFrom(error);
  }
}

const ENV_FILE = "--env-file";

/** The commands, in the order of the help. */
const COMMANDS = new Map<string, () => Promise<(program: Command) => void>>([
  ["start", async () => (await import("./start.js")).addStart],
  ["serve", async () => (await import("./start.js")).addServe],
  ["demo", async () => (await import("./demo.js")).addDemo],
  ["app", async () => (await import("./app.js")).addApp],
  ["provider", async () => (await import("./provider.js")).addProvider],
  ["client", async () => (await import("./client.js")).addClient],
  ["connection", async () => (await import("./connection.js")).addConnection],
  ["token", async () => (await import("./token.js")).addToken],
  ["webhook", async () => (await import("./webhook.js")).addWebhook],
  ["console", async () => (await import("./start.js")).addConsole],
  ["call", async () => (await import("./call.js")).addCall],
  ["calls", async () => (await import("./calls.js")).addCalls],
  ["audit", async () => (await import("./audit.js")).addAudit],
  ["key", async () => (await import("./key.js")).addKey],
  ["db", async () => (await import("./db.js")).addDb],
  ["config", async () => (await import("./config.js")).addConfig],
]);

/**
 * Loads the named command with its options and help, or all commands when there is none, as for `--help`. Loading a
 * command takes longer than running it, so only what is named is loaded.
 */
async function createProgram(name: string | undefined): Promise<Command> {
  const program = new Command("relay")
    .description("Performs API calls at OAuth providers with stored tokens that callers never see.")
    .version(packageVersion())
    .option(`${ENV_FILE} <file>`, "settings file, one NAME=VALUE per line; by default relay.env next to the database")
    .hook("preAction", (command) => loadEnvFile(command.opts<{ envFile?: string }>().envFile))
    .exitOverride()
    .configureOutput({ writeOut: writeOutput })
    .showHelpAfterError("Run 'relay --help' for the commands.")
    .addHelpText("after", HELP);
  const named = COMMANDS.get(name ?? "");
  for (const load of named === undefined ? COMMANDS.values() : [named]) (await load())(program);
  return program;
}

const HELP = `
Exit codes: 0 done, 1 the operation failed, 2 the usage or the configuration is wrong.
Settings come from RELAY_ variables, or from a file of them: 'relay serve --help' lists them.
Without a command, 'relay' does the same as 'relay start'.

Example:
  $ relay app create "My application"`;
