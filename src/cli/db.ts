import { existsSync, statSync } from "node:fs";
import type { Command } from "commander";
import type { Config } from "../config/config.js";
import {
  type PostgresLocation,
  parseDatabaseLocation,
  type SqliteLocation,
  textFromDatabaseLocation,
} from "../config/database-location.js";
import type { CopyCounts } from "../store/backup.js";
import { addCommand, addGroup, failure, textFields, usageError, writeJson, writeLine, writeResult } from "./command.js";
import { addDbDrill } from "./db-drill.js";
import { configFromEnvironment, noDatabase } from "./open-store.js";
import { withProgress } from "./progress.js";

/** `relay db`: the database itself. */
export function addDb(program: Command): void {
  addGroup(program, {
    usage: "db",
    about: "Back up, migrate or copy the database, or exercise its recovery.",
    examples: ["relay db backup relay-monday.db", "relay db copy --from sqlite:data/relay.db"],
    commands: [addDbBackup, addDbDrill, addDbMigrate, addDbCopy],
  });
}

/** `relay db migrate` */
function addDbMigrate(group: Command): void {
  addCommand(group, {
    usage: "migrate",
    about:
      "Migrate the database of RELAY_DATABASE to this version's schema; in PostgreSQL, create the schema if there is none.",
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
  writeResult(options, { database }, `${database} is up to date`);
}

/** `relay db backup` */
function addDbBackup(group: Command): void {
  addCommand(group, {
    usage: "backup <file>",
    about: "Copy the SQLite database of RELAY_DATABASE to a new file while the service keeps running.",
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
  await withProgress("Copying the database, and checking the copy…", () => backupDatabase(database.path, file));
  const result = { database: textFromDatabaseLocation(database), file, bytes: statSync(file).size };
  writeResult(options, result, `${file} is a copy of ${result.database} (${result.bytes} bytes)`);
}

interface CopyOptions {
  readonly from: string;
  readonly to?: string;
  readonly json?: boolean;
}

/** `relay db copy` */
function addDbCopy(group: Command): void {
  addCommand(group, {
    usage: "copy",
    about: "Copy a store from SQLite into an empty PostgreSQL database.",
    examples: ["RELAY_DATABASE=postgres://… relay db copy --from sqlite:data/relay.db"],
    more: `Stop the relay first: what it writes during the copy is lost. Sealed values are copied as they are,
so keep using the same key file. An interrupted copy leaves nothing; run it again.`,
  })
    .requiredOption("--from <database>", "sqlite:PATH")
    .option(
      "--to <database>",
      "postgres://…; RELAY_DATABASE by default, which keeps a password out of the process list",
    )
    .action(copy);
}

async function copy(options: CopyOptions): Promise<void> {
  const config = configFromEnvironment();
  const counts = await copyBetween(sourceFrom(options.from), targetFrom(options.to, config), config);
  if (options.json) writeJson(counts);
  else writeLine(textFields(Object.entries(counts).map(([table, count]) => [table.replace("_", " "), String(count)])));
}

async function copyBetween(from: SqliteLocation, to: PostgresLocation, config: Config): Promise<CopyCounts> {
  const [{ storeIdOf, openDatabase }, { openPostgresStore }, { copyStore }, { countLeftAnswers, spoolPlaceOf }] =
    await Promise.all([
      import("../store/open-database.js"),
      import("../store/postgres.js"),
      import("../store/backup.js"),
      import("../store/spool.js"),
    ]);
  const source = openDatabase(from.path);
  try {
    const waiting = countLeftAnswers(spoolPlaceOf({ ...config, database: from }, storeIdOf(source)));
    if (waiting > 0)
      throw failure(
        `Answers of token endpoints wait in the spool: ${waiting}. Start the relay once more, which stores them.`,
      );
    const limits = { maxConnections: 1, timeoutMs: config.databaseTimeoutMs };
    const target = await openPostgresStore(to, limits);
    try {
      return await withProgress("Copying the store…", (show) =>
        copyStore(source, target.session, (table, rows) => show(`Copying the store: ${table}, ${rows} rows`)),
      );
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
