import type { Command } from "commander";
import { SETTINGS } from "../config/setting-list.js";
import { addCommand, ExitError } from "./command.js";

/** `relay serve`: runs the service until SIGTERM or SIGINT. */
export function addServe(program: Command): void {
  addCommand(program, {
    usage: "serve",
    about:
      "Run the relay until SIGTERM or SIGINT. Standard output has one JSON object per line, with or without --json.",
    examples: ["RELAY_LISTEN=127.0.0.1:9000 relay serve"],
    more: `Settings, all from the environment:\n${SETTINGS.map(settingText).join("\n")}`,
  }).action(serve);
}

async function serve(): Promise<void> {
  const { runService } = await import("../main.js");
  const exitCode = await runService(process.env, process.execArgv);
  // The reason was already printed.
  if (exitCode !== 0) throw new ExitError(exitCode === 2 ? 2 : 1, "");
}

function settingText({ name, fallback, about }: (typeof SETTINGS)[number]): string {
  return `  ${name} (${fallback === "" ? "no default" : `default ${fallback}`})\n      ${about}`;
}
