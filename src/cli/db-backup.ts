import { existsSync, statSync } from "node:fs";
import type { Command } from "commander";
import { textFromDatabaseLocation } from "../config/database-location.js";
import { addCommand } from "./command.js";
import { configFromEnvironment } from "./environment.js";
import { usageError } from "./exit-error.js";
import { noDatabase } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay db backup` */
export function addDbBackup(group: Command): void {
  addCommand(group, {
    usage: "backup <file>",
    about: "Copy the SQLite database of RELAY_DATABASE into a new file, while the service goes on.",
    examples: ["relay db backup /var/backups/relay-monday.db"],
    more: `The copy is of one moment, and complete when the command ends. Tokens in it are sealed: it is of use only with the key
file, which is to be backed up once, in another place. PostgreSQL has pg_dump for this.`,
  }).action(backup);
}

async function backup(file: string, options: { readonly json?: boolean }): Promise<void> {
  const { database } = configFromEnvironment();
  if (database.kind !== "sqlite") throw usageError("RELAY_DATABASE: back a PostgreSQL database up with pg_dump.");
  if (!existsSync(database.path)) throw noDatabase(database);
  const { backupDatabase } = await import("../store/backup.js");
  await backupDatabase(database.path, file);
  const result = { database: textFromDatabaseLocation(database), file, bytes: statSync(file).size };
  if (options.json) writeJson(result);
  else writeLine(`${file} is a copy of ${result.database} (${result.bytes} bytes)`);
}
