import { existsSync } from "node:fs";
import type { Command } from "commander";
import type { Config } from "../config/config.js";
import { type PostgresLocation, parseDatabaseLocation, type SqliteLocation } from "../config/database-location.js";
import type { CopyCounts } from "../store/copy-store.js";
import { addCommand } from "./command.js";
import { configFromEnvironment } from "./environment.js";
import { usageError } from "./exit-error.js";
import { writeJson, writeLine } from "./output.js";
import { textFields } from "./text-table.js";

interface CopyOptions {
  readonly from: string;
  readonly to?: string;
  readonly json?: boolean;
}

/** `relay db copy` */
export function addDbCopy(group: Command): void {
  addCommand(group, {
    usage: "copy",
    about: "Copy a store from SQLite into an empty PostgreSQL database.",
    examples: ["RELAY_DATABASE=postgres://… relay db copy --from sqlite:data/relay.db"],
    more: `Stop the relay first: what it would write during the copy stays behind. Sealed values are copied as they are,
so the key file goes on to be used. An interrupted copy leaves nothing; run it again.`,
  })
    .requiredOption("--from <database>", "sqlite:PATH")
    .option("--to <database>", "postgres://…; RELAY_DATABASE by default, where no list of processes shows a password")
    .action(copy);
}

async function copy(options: CopyOptions): Promise<void> {
  const config = configFromEnvironment();
  const counts = await copyBetween(sourceFrom(options.from), targetFrom(options.to, config), config);
  if (options.json) writeJson(counts);
  else writeLine(textFields(Object.entries(counts).map(([table, count]) => [table.replace("_", " "), String(count)])));
}

async function copyBetween(from: SqliteLocation, to: PostgresLocation, config: Config): Promise<CopyCounts> {
  const [{ openDatabase }, { openPostgresStore }, { copyStore }] = await Promise.all([
    import("../store/open-database.js"),
    import("../store/postgres.js"),
    import("../store/copy-store.js"),
  ]);
  const source = openDatabase(from.path);
  try {
    const limits = { maxConnections: 1, timeoutMs: config.databaseTimeoutMs };
    const target = await openPostgresStore(to, limits);
    try {
      return await copyStore(source, target.session);
    } finally {
      await target.close();
    }
  } finally {
    source.close();
  }
}

/** Opening would make a database where there is none. */
function sourceFrom(text: string): SqliteLocation {
  const location = parseDatabaseLocation(text);
  if (location?.kind !== "sqlite") throw usageError("--from: expected sqlite:PATH");
  if (!existsSync(location.path)) throw usageError(`--from: ${location.path} does not exist`);
  return location;
}

function targetFrom(text: string | undefined, { database }: Config): PostgresLocation {
  const location = text === undefined ? database : parseDatabaseLocation(text);
  if (location?.kind !== "postgres") throw usageError("--to, or RELAY_DATABASE: expected postgres://…");
  return location;
}
