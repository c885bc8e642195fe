import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import type { Config } from "../config/config.js";
import {
  type PostgresLocation,
  parseDatabaseLocation,
  type SqliteLocation,
  textFromDatabaseLocation,
} from "../config/database-location.js";
import type { CopyCounts } from "../store/backup.js";
import type { OpenedValues } from "../store/verify-keys.js";
import {
  addCommand,
  addGroup,
  cleaningUp,
  failure,
  textFields,
  textTable,
  usageError,
  withProgress,
  writeResult,
} from "./command.js";
import { configFromEnvironment, loadSealer, noDatabase } from "./open-store.js";

/** `relay db`: the database itself. */
export function addDb(program: Command): void {
  addGroup(program, {
    usage: "db",
    about: "Manage the database: back it up, rehearse its recovery, migrate or copy it.",
    examples: ["relay db backup relay-monday.db", "relay db copy --from sqlite:data/relay.db"],
    commands: [addDbBackup, addDbDrill, addDbMigrate, addDbCopy],
  });
}

function addDbMigrate(group: Command): void {
  addCommand(group, {
    usage: "migrate",
    about:
      "Migrate the database in RELAY_DATABASE to this version's schema; in PostgreSQL, create the schema if there is none.",
    examples: ["relay db migrate"],
    more: "The service does the same when it starts. A database of a newer version is refused and left unchanged.",
  }).action(migrate);
}

async function migrate(options: { readonly json?: boolean }): Promise<void> {
  const config = configFromEnvironment();
  const { hasStore, openStore } = await import("../store/open-store.js");
  // A new database is created together with its key file, by the service or `relay app create`.
  if (config.database.kind === "sqlite" && !(await hasStore(config))) throw noDatabase(config.database);
  // Opening migrates. Nothing is sealed, so no key is needed.
  await (await openStore(config)).close();
  const database = textFromDatabaseLocation(config.database);
  writeResult(options, { database }, `${database} is up to date`);
}

function addDbBackup(group: Command): void {
  addCommand(group, {
    usage: "backup <file>",
    about: "Copy the SQLite database in RELAY_DATABASE to a new file while the service keeps running.",
    examples: ["relay db backup /var/backups/relay-monday.db"],
    more: `The copy is a consistent snapshot, complete when the command ends. Tokens in it are sealed, so it is useful only
with the key file; back that up once, in another place. For PostgreSQL use pg_dump.`,
  }).action(backup);
}

async function backup(file: string, options: { readonly json?: boolean }): Promise<void> {
  const { database } = configFromEnvironment();
  if (database.kind !== "sqlite") throw usageError("RELAY_DATABASE: back up a PostgreSQL database with pg_dump.");
  if (!existsSync(database.path)) throw noDatabase(database);
  const { backupDatabase, removeUnfinished } = await import("../store/backup.js");
  let own: string | undefined;
  const copyDatabase = () =>
    backupDatabase(database.path, file, (draft) => {
      own = draft;
    });
  await cleaningUp(
    () => (own === undefined ? undefined : removeUnfinished(file, own)),
    () => withProgress("Copying the database and checking the copy…", copyDatabase),
  );
  const result = { database: textFromDatabaseLocation(database), file, bytes: statSync(file).size };
  writeResult(options, result, `${file} is a copy of ${result.database} (${result.bytes} bytes)`);
}

interface CopyOptions {
  readonly from: string;
  readonly to?: string;
  readonly json?: boolean;
}

function addDbCopy(group: Command): void {
  addCommand(group, {
    usage: "copy",
    about: "Copy a store from SQLite into an empty PostgreSQL database.",
    examples: ["RELAY_DATABASE=postgres://… relay db copy --from sqlite:data/relay.db"],
    more: `Stop the relay first: anything it writes during the copy is lost. Sealed values are copied unchanged,
so keep using the same key file. An interrupted copy leaves nothing behind; run it again.`,
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
  const fields = Object.entries(counts).map(([table, count]) => [table.replace("_", " "), String(count)] as const);
  writeResult(options, counts, textFields(fields));
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
        `Answers from token endpoints are waiting in the spool: ${waiting}. Start the relay once more to store them.`,
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

/** Checks that the database exists, because opening would create it. */
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

interface DrillOptions {
  readonly keyFile?: string;
  readonly folder?: string;
  readonly json?: boolean;
}

function addDbDrill(group: Command): void {
  addCommand(group, {
    usage: "drill [backup]",
    about:
      "Rehearse a recovery: back up the SQLite database, restore the copy elsewhere, and open every sealed value in it with the key file. Changes nothing and can run alongside the service.",
    examples: ["relay db drill --key-file /mnt/safe/relay.key", "relay db drill /var/backups/relay-monday.db"],
    more: `The restored copy is removed at the end. With a backup, that file is restored instead of a new copy. For PostgreSQL, restore a
dump into another database and set RELAY_DATABASE to it; its values are opened in place. Exit code 1 if any value cannot be opened.`,
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
  const rows = tables.map(({ table, opened, damaged }) => [table, String(opened), String(damaged)]);
  const text = `${source}\n${textTable(["SEALED VALUES OF", "OPENED", "NOT OPENED"], rows)}`;
  writeResult(
    options,
    { source, tables: Object.fromEntries(tables.map(({ table, ...counts }) => [table, counts])) },
    text,
  );
  if (unopened > 0) {
    throw failure(
      `${unopened} values cannot be opened: this backup with this key file would lose them. Keep older backups and keys.`,
    );
  }
}

/** Restores a database into a temporary folder, which is removed however `use` ends, even by a signal. */
async function withRestored<Result>(
  file: string,
  { folder = tmpdir() }: DrillOptions,
  use: (path: string) => Promise<Result>,
): Promise<Result> {
  if (!existsSync(file)) throw noDatabase({ kind: "sqlite", path: file });
  const { backupDatabase } = await import("../store/backup.js");
  const elsewhere = mkdtempSync(join(folder, "relay-drill-"));
  const remove = () => rmSync(elsewhere, { recursive: true, force: true });
  return cleaningUp(remove, async () => {
    const path = join(elsewhere, "relay.db");
    await backupDatabase(file, path);
    return use(path);
  }).finally(remove);
}

/** Opens the store as a restored service would, then every sealed value. */
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
  // A copy in a file may be migrated; a database that the operator restored is only read.
  if (config.database.kind === "postgres") {
    const { state } = await inspectStore(config, undefined);
    if (state === "older")
      throw failure(
        `${textFromDatabaseLocation(config.database)} has the schema of an older version; run 'relay db migrate' on it first.`,
      );
    if (state === "missing") throw nothingRestored();
  }
  const store = await openStore(config);
  try {
    // Every store has a key check from its first start on.
    if ((await store.keyChecks.list()).length === 0) throw nothingRestored();
    await judgeKeys(store, sealer);
    return await openAll(store, sealer, (values) => show(`Opening sealed values: ${values}`));
  } finally {
    await store.close();
  }
}

function nothingRestored(): Error {
  return failure("The restored database has no store of this version: the backup is empty or not from a relay.");
}
