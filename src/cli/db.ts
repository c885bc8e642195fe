import type { Command } from "commander";
import { addGroup } from "./command.js";
import { addDbBackup } from "./db-backup.js";
import { addDbCopy } from "./db-copy.js";
import { addDbMigrate } from "./db-migrate.js";

/** `relay db`: the database itself. */
export function addDb(program: Command): void {
  const group = addGroup(program, {
    usage: "db",
    about: "Back up, bring up to date or copy the database.",
    examples: ["relay db backup relay-monday.db", "relay db copy --from sqlite:data/relay.db"],
  });
  for (const add of [addDbBackup, addDbMigrate, addDbCopy]) add(group);
}
