import type { Command } from "commander";
import { textFromDatabaseLocation } from "../config/database-location.js";
import { addCommand } from "./command.js";
import { configFromEnvironment } from "./environment.js";
import { noDatabase } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay db migrate` */
export function addDbMigrate(group: Command): void {
  addCommand(group, {
    usage: "migrate",
    about:
      "Bring the database of RELAY_DATABASE to this version's schema; in PostgreSQL it is made where there is none.",
    examples: ["relay db migrate"],
    more: "The service does the same at its start. A database of a newer version is refused, and left as it is.",
  }).action(migrate);
}

async function migrate(options: { readonly json?: boolean }): Promise<void> {
  const config = configFromEnvironment();
  const { hasStore, openStore } = await import("../store/open-store.js");
  // Its key file is made together with it, by the service or `relay app create`.
  if (config.database.kind === "sqlite" && !(await hasStore(config))) throw noDatabase(config.database);
  // Opening is migrating; nothing is sealed, so no key is needed.
  await (await openStore(config)).close();
  const database = textFromDatabaseLocation(config.database);
  if (options.json) writeJson({ database });
  else writeLine(`${database} is up to date`);
}
