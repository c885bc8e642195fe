import type { Command } from "commander";
import { addGroup } from "./command.js";
import { addDbCopy } from "./db-copy.js";
import { addDbMigrate } from "./db-migrate.js";

/** `relay db`: the database itself. */
export function addDb(program: Command): void {
  const group = addGroup(program, {
    usage: "db",
    about: "Bring the database up to date, or move it to PostgreSQL.",
    examples: ["relay db migrate", "relay db copy --from sqlite:data/relay.db"],
  });
  for (const add of [addDbMigrate, addDbCopy]) add(group);
}
