import { randomBytes } from "node:crypto";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import { type Administration, createAuditStamps } from "../admin/administration.js";
import { type Config, parseConfig } from "../config/config.js";
import { type DatabaseLocation, textFromDatabaseLocation } from "../config/database-location.js";
import type { Provider, ProviderCatalog, ProviderProblem } from "../providers/provider.js";
import type { Sealer } from "../sealing/seal.js";
import type { Store } from "../store/store.js";
import { failure, usageError, writeNote } from "./command.js";

/** The store that commands use: the same files as a running relay, safe to use at the same time. */
export interface OpenStore {
  readonly config: Config;
  readonly store: Store;
  readonly sealer: Sealer;
}

interface OpenOptions {
  /** Create key file and database when neither exists, as the first command of a new relay does; not in production. */
  readonly mayCreate?: boolean;
}

/** Opens the key file and the database of the environment for the duration of `use`. */
export async function withStore<Result>(
  use: (open: OpenStore) => Promise<Result>,
  options?: OpenOptions,
): Promise<Result> {
  return withStoreOf(configFromEnvironment(), use, options);
}

/**
 * The same for a given configuration. A missing database is treated as a wrong path. Rejects with KeyFileError,
 * StoreOpenError, KeyMismatchError or a usage error. The keys are checked after the store was opened and migrated.
 */
export async function withStoreOf<Result>(
  config: Config,
  use: (open: OpenStore) => Promise<Result>,
  { mayCreate = false }: OpenOptions = {},
): Promise<Result> {
  const { keyFile, database, keyFileMustExist } = config;
  const [{ hasStore, openStore }, { verifyKeys }] = await Promise.all([
    import("../store/open-store.js"),
    import("../store/verify-keys.js"),
  ]);
  const hasDatabase = await hasStore(config);
  if (!hasDatabase && (keyFileMustExist || !mayCreate)) throw noDatabase(database);
  // With an existing database, a new key would open nothing.
  const sealer = await loadSealer(keyFile, keyFileMustExist || hasDatabase);
  const store = await openStore(config, {
    onDamagedCalls: (file) =>
      writeNote(`The call records were damaged. They were moved to ${file}, and new ones started.`),
  });
  try {
    await verifyKeys(store, sealer);
    return await use({ config, store, sealer });
  } finally {
    await store.close();
  }
}

/** Loads the key file. Rejects with KeyFileError. */
export async function loadSealer(keyFile: string, mustExist: boolean): Promise<Sealer> {
  const [{ createSealer }, { loadKeyring }] = await Promise.all([
    import("../sealing/seal.js"),
    import("../sealing/keyring.js"),
  ]);
  return createSealer(await loadKeyring(keyFile, { mustExist }));
}

/** The error for a missing database. */
export function noDatabase(database: DatabaseLocation): Error {
  const problem =
    database.kind === "sqlite"
      ? `${resolve(database.path)} does not exist`
      : `${textFromDatabaseLocation(database)} contains no store`;
  return usageError(
    `RELAY_DATABASE: ${problem}. Commands read the settings of the terminal they run in: run this in the folder of the service, or give its settings with --env-file FILE. 'relay serve' creates a new store.`,
  );
}

/** The {@link Administration} of a command. The audit trail names the operating system's user. */
export function administrationOf({ store, sealer }: Pick<OpenStore, "store" | "sealer">): Administration {
  const newAuditStamp = createAuditStamps(Date.now, () => randomBytes(8));
  return { actor: `cli:${userName()}`, store, sealer, now: Date.now, newAuditStamp };
}

/** The user's name. In a container the user id may have none. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}

/** The configuration of this process. Throws a usage error that lists every problem of the environment. */
export function configFromEnvironment(): Config {
  const parsed = parseConfig(process.env, process.execArgv);
  if ("problems" in parsed) throw usageError(parsed.problems.join("\n"));
  return parsed.config;
}

/** What is wrong with the operator's definitions, alone or with others: an alias may be taken. */
export async function definitionProblems({
  providers: paths,
  allowLoopback,
}: Pick<Config, "providers" | "allowLoopback">): Promise<readonly ProviderProblem[]> {
  const [{ loadProviders }, { ProviderDefinitionError }] = await Promise.all([
    import("../providers/catalog.js"),
    import("../providers/provider.js"),
  ]);
  try {
    loadProviders({ paths, allowLoopback });
    return [];
  } catch (error) {
    if (error instanceof ProviderDefinitionError) return error.problems;
    throw error;
  }
}

/** Loads the shipped and the operator's definitions. Rejects with ProviderDefinitionError. */
export async function loadCatalog({ providers, allowLoopback }: Config): Promise<ProviderCatalog> {
  const { loadProviders } = await import("../providers/catalog.js");
  return loadProviders({ paths: providers, allowLoopback }).catalog;
}

/**
 * The provider with this name or alias. Throws when there is none in RELAY_PROVIDERS of the command, which may differ
 * from the service's.
 */
export function requireProvider(catalog: ProviderCatalog, name: string): Provider {
  const provider = catalog.find(name);
  if (provider !== undefined) return provider;
  const { RELAY_PROVIDERS: paths = "" } = process.env;
  const value = paths === "" ? "is not set" : `is ${paths}`;
  throw failure(
    `There is no provider with this name. Commands read RELAY_PROVIDERS of the terminal they run in, where it ${value}; the service's may differ, so give its settings with --env-file FILE. 'relay provider list' lists the providers.`,
  );
}
