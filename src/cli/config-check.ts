import type { Command } from "commander";
import { readConfig } from "../config/config.js";
import { parseDatabaseLocation, textFromDatabaseLocation } from "../config/database-location.js";
import { SETTINGS } from "../config/setting-list.js";
import { configWarnings, exposureProblems } from "../config/warnings.js";
import { fileProblems } from "./check-files.js";
import { addCommand } from "./command.js";
import { usageError } from "./exit-error.js";
import { writeJson, writeLine, writeNote } from "./output.js";
import { PRIVATE_KEY_VARIABLE } from "./private-key.js";
import { textFields } from "./text-table.js";

/** `relay config check`: every problem of the environment, or the values in effect. */
export function addConfigCheck(group: Command): void {
  addCommand(group, {
    usage: "check",
    about:
      "Check the settings, the files and the database they name; print every problem at once, or the values in effect.",
    examples: ["RELAY_DEADLINE_MS=10000 relay config check"],
    more: "Nothing is made or changed, so it may run beside the service and before it. Exit code 2 with any problem.",
  }).action(checkConfig);
}

async function checkConfig(options: { readonly json?: boolean }): Promise<void> {
  const read = readConfig(process.env, process.execArgv);
  const warnings = configWarnings(read.config, process.env)
    .filter(({ setting }) => setting !== PRIVATE_KEY_VARIABLE)
    .map(({ setting, text }) => `${setting}: ${text}`);
  const found = await fileProblems(read.config, read.wrong, (text) => warnings.push(text));
  const problems = [...read.problems, ...exposureProblems(read.config), ...found];
  for (const warning of warnings) writeNote(`warning: ${warning}`);
  const settings = SETTINGS.map(
    ({ name, fallback }) => [name, shownSetting(name, process.env[name] || fallback)] as const,
  );
  const isOk = problems.length === 0;
  if (options.json) {
    writeJson({ ok: isOk, problems, warnings, ...(isOk ? { settings: Object.fromEntries(settings) } : undefined) });
  } else if (isOk) {
    writeLine(`ok\n${textFields(settings)}`);
  }
  if (!isOk) throw usageError(problems.join("\n"));
}

/** The address of a database may hold a password. */
function shownSetting(name: string, value: string): string {
  const location = name === "RELAY_DATABASE" ? parseDatabaseLocation(value) : undefined;
  return location === undefined ? value : textFromDatabaseLocation(location);
}
