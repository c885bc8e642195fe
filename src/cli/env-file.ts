import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { parseDatabaseLocation } from "../config/database-location.js";
import { TABLE } from "../config/setting-list.js";
import { usageError, writeNote } from "./command.js";

/**
 * Loads settings from a file of `NAME=VALUE` lines, in the format of systemd and container engines. Variables that are
 * already set in the environment take precedence.
 *
 * @param named the file of `--env-file`; without it, `relay.env` in the folder of the database, if it exists.
 */
export function loadEnvFile(named: string | undefined): void {
  const file = named ?? envFileBeside(process.env["RELAY_DATABASE"]);
  const text = readIfThere(file, named !== undefined);
  if (text === undefined) return;
  for (const [at, line] of text.split("\n").entries()) {
    if (!/^\s*(?:#|$)|=/.test(line)) throw usageError(`${file}: line ${at + 1} must be NAME=VALUE.`);
  }
  for (const [name, value] of Object.entries(parseEnv(text))) {
    if (/^NODE_(?!ENV$)/.test(name))
      writeNote(
        `warning: ${file}: ${name} has no effect in this file, because Node.js reads it before; set it in the environment`,
      );
    if (!process.env[name]) process.env[name] = value;
  }
}

/** The default settings file. @param database value of RELAY_DATABASE. */
export function envFileBeside(database: string | undefined): string {
  const location = parseDatabaseLocation(database || TABLE.database.fallback);
  return join(location?.kind === "sqlite" ? dirname(location.path) : "data", "relay.env");
}

function readIfThere(file: string, mustExist: boolean): string | undefined {
  try {
    // Some editors on Windows begin a file with a byte order mark, which would become part of the first name.
    return readFileSync(file, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!mustExist && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw usageError(`${mustExist ? "--env-file: " : ""}${file} cannot be read (${code}).`, error);
  }
}
