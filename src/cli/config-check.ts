import { access, constants } from "node:fs/promises";
import type { Command } from "commander";
import { type Config, parseConfig, SETTINGS, unknownSettings } from "../config.js";
import { parseDatabaseLocation, textFromDatabaseLocation } from "../database-location.js";
import { adminTokenProblems } from "./check-admin-tokens.js";
import { addCommand } from "./command.js";
import { usageError } from "./exit-error.js";
import { writeJson, writeLine, writeNote } from "./output.js";
import { PRIVATE_KEY_VARIABLE } from "./private-key.js";
import { textFields } from "./text-table.js";

/** `relay config check`: every problem of the environment, or the values in effect. */
export function addConfigCheck(group: Command): void {
  addCommand(group, {
    usage: "check",
    about: "Check the settings and the files they name; print every problem at once, or the values in effect.",
    examples: ["RELAY_DEADLINE_MS=10000 relay config check"],
  }).action(checkConfig);
}

async function checkConfig(options: { readonly json?: boolean }): Promise<void> {
  const parsed = parseConfig(process.env, process.execArgv);
  const problems = "problems" in parsed ? parsed.problems : await fileProblems(parsed.config);
  const warnings = unknownSettings(process.env)
    .filter((name) => name !== PRIVATE_KEY_VARIABLE)
    .map((name) => `${name}: is no setting of this version and is ignored`);
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

/** What is wrong with the files that the settings name; nothing is created. */
async function fileProblems(config: Config): Promise<string[]> {
  const problems = [
    ...(await unreadable("RELAY_TLS_CERT", config.tlsCertFile)),
    ...(await unreadable("RELAY_TLS_KEY", config.tlsKeyFile)),
    ...(config.keyFileMustExist ? await unreadable("RELAY_KEY_FILE", config.keyFile) : []),
  ];
  return [...problems, ...(await adminTokenProblems(config)), ...(await definitionProblems(config))];
}

async function unreadable(setting: string, path: string | undefined): Promise<string[]> {
  if (path === undefined) return [];
  try {
    await access(path, constants.R_OK);
    return [];
  } catch (error) {
    return [`${setting}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`];
  }
}

async function definitionProblems({ providers, allowLoopback }: Config): Promise<string[]> {
  const { loadProviders } = await import("../providers/catalog.js");
  const { ProviderDefinitionError, textFromProblem } = await import("../providers/problem.js");
  try {
    await loadProviders({ paths: providers, allowLoopback });
    return [];
  } catch (error) {
    if (!(error instanceof ProviderDefinitionError)) throw error;
    return error.problems.map((problem) => `RELAY_PROVIDERS: ${textFromProblem(problem)}`);
  }
}
