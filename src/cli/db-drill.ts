import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import type { Config } from "../config/config.js";
import { textFromDatabaseLocation } from "../config/database-location.js";
import type { OpenedValues } from "../store/verify-keys.js";
import { addCommand, failure, textTable, writeJson, writeLine } from "./command.js";
import { configFromEnvironment, loadSealer, noDatabase } from "./open-store.js";
import { withProgress } from "./progress.js";

interface DrillOptions {
  readonly keyFile?: string;
  readonly folder?: string;
  readonly json?: boolean;
}

/** `relay db drill` */
export function addDbDrill(group: Command): void {
  addCommand(group, {
    usage: "drill [backup]",
    about:
      "Exercise a recovery: back the SQLite database up, restore the copy elsewhere, and open every sealed value in it with the key file. Changes nothing, and can run beside the service.",
    examples: ["relay db drill --key-file /mnt/safe/relay.key", "relay db drill /var/backups/relay-monday.db"],
    more: `What is restored is removed at the end. With a backup, that file is restored instead of a new copy. Of PostgreSQL, restore a dump
into another database and name that one in RELAY_DATABASE: its values are opened where they are. Exit code 1 if a value does not open.`,
  })
    .option("--key-file <file>", "the copy of the key file that you would restore; RELAY_KEY_FILE by default")
    .option("--folder <path>", "where to restore, with room for the database; the system's temporary folder by default")
    .action(drill);
}

async function drill(backup: string | undefined, options: DrillOptions): Promise<void> {
  const config = configFromEnvironment();
  const { database } = config;
  const source = backup ?? textFromDatabaseLocation(database);
  const tables = await withProgress("Restoring a copy…", (show) =>
    database.kind === "postgres"
      ? openValues(config, options, show)
      : withRestored(backup ?? database.path, options, (path) =>
          openValues({ ...config, database: { kind: "sqlite", path } }, options, show),
        ),
  );
  const unopened = tables.reduce((sum, { damaged }) => sum + damaged, 0);
  if (options.json)
    writeJson({ source, tables: Object.fromEntries(tables.map(({ table, ...counts }) => [table, counts])) });
  else {
    const rows = tables.map(({ table, opened, damaged }) => [table, String(opened), String(damaged)]);
    writeLine(`${source}\n${textTable(["SEALED VALUES OF", "OPENED", "NOT OPENED"], rows)}`);
  }
  if (unopened > 0) {
    throw failure(
      `${unopened} values do not open: this backup with this key file would lose them. Keep older backups and keys.`,
    );
  }
}

/** Restores a database into a folder of its own, which is removed however `use` ends. */
async function withRestored<Result>(
  file: string,
  { folder = tmpdir() }: DrillOptions,
  use: (path: string) => Promise<Result>,
): Promise<Result> {
  if (!existsSync(file)) throw noDatabase({ kind: "sqlite", path: file });
  const { backupDatabase } = await import("../store/backup.js");
  const elsewhere = await mkdtemp(join(folder, "relay-drill-"));
  try {
    const path = join(elsewhere, "relay.db");
    await backupDatabase(file, path);
    return await use(path);
  } finally {
    await rm(elsewhere, { recursive: true, force: true });
  }
}

/** As a restored service would begin, and then every value. */
async function openValues(
  config: Config,
  { keyFile = config.keyFile }: DrillOptions,
  show: (text: string) => void,
): Promise<readonly OpenedValues[]> {
  const [{ inspectStore, openStore }, { judgeKeys, openAll }] = await Promise.all([
    import("../store/open-store.js"),
    import("../store/verify-keys.js"),
  ]);
  const sealer = await loadSealer(keyFile, true);
  // A copy in a file may be brought up to date; a database that somebody else restored is only looked at.
  if (config.database.kind === "postgres" && (await inspectStore(config, undefined)).state !== "current")
    throw nothingRestored();
  const store = await openStore(config);
  try {
    // Every store has one from its first start on.
    if ((await store.keyChecks.list()).length === 0) throw nothingRestored();
    await judgeKeys(store, sealer);
    return await openAll(store, sealer, (values) => show(`Opening sealed values: ${values}`));
  } finally {
    await store.close();
  }
}

function nothingRestored(): Error {
  return failure("There is no store of this version in what was restored: the backup is empty, or of something else.");
}
