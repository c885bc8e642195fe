import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { parseDatabaseLocation } from "../config/database-location.js";
import { TABLE } from "../config/setting-list.js";
import { usageError, writeNote } from "./command.js";

/**
 * Takes settings from a file of lines `NAME=VALUE`, as systemd and container engines read it. A variable that the
 * environment has itself counts before the file.
 *
 * @param named the file of `--env-file`; without it `relay.env` in the folder of the database, where there is one.
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
        `warning: ${file}: ${name} has no effect here, since Node.js has read it before; set it in the terminal`,
      );
    if (!process.env[name]) process.env[name] = value;
  }
}

/** Where settings are looked for that nobody names. @param database value of RELAY_DATABASE. */
export function envFileBeside(database: string | undefined): string {
  const location = parseDatabaseLocation(database || TABLE.database.fallback);
  return join(location?.kind === "sqlite" ? dirname(location.path) : "data", "relay.env");
}

function readIfThere(file: string, mustExist: boolean): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!mustExist && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw usageError(`${mustExist ? "--env-file: " : ""}${file} cannot be read (${code}).`, error);
  }
}
