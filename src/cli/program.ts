import { Command, CommanderError } from "commander";
import { packageVersion } from "../package-version.js";
import { addApp } from "./app.js";
import { addAudit } from "./audit.js";
import { addCall } from "./call.js";
import { addCalls } from "./calls.js";
import { addClient } from "./client.js";
import { addConfig } from "./config.js";
import { addConnection } from "./connection.js";
import { addDb } from "./db.js";
import { addDemo } from "./demo.js";
import { exitCodeFrom } from "./exit-code.js";
import { addKey } from "./key.js";
import { writeOutput } from "./output.js";
import { addProvider } from "./provider.js";
import { addServe } from "./serve.js";
import { addWebhook } from "./webhook.js";

/**
 * Runs one command line, without the program's name, and resolves to the exit code: 0 done, 1 the operation failed,
 * 2 the usage or the configuration is wrong. Errors are on standard error.
 */
export async function runCommand(argv: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync(argv, { from: "user" });
    return 0;
  } catch (error) {
    // Help is no failure; anything else that commander throws is wrong usage, and it has said so.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return exitCodeFrom(error);
  }
}

/** Every command with its options and help; what a command needs is loaded when it runs. */
function createProgram(): Command {
  const program = new Command("relay")
    .description("Performs API calls at OAuth providers with stored tokens that callers never see.")
    .version(packageVersion())
    .exitOverride()
    .configureOutput({ writeOut: writeOutput })
    .showHelpAfterError("Run 'relay --help' for the commands.")
    .addHelpText("after", HELP);
  for (const add of [
    addServe,
    addDemo,
    addApp,
    addProvider,
    addClient,
    addConnection,
    addWebhook,
    addCall,
    addCalls,
    addAudit,
    addKey,
    addDb,
    addConfig,
  ])
    add(program);
  return program;
}

const HELP = `
Exit codes: 0 done, 1 the operation failed, 2 the usage or the configuration is wrong.
Settings come from RELAY_ variables: 'relay serve --help' lists them.

Example:
  $ relay app create "My application"`;
