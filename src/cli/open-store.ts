import type { Config } from "../config/config.js";
import { type DatabaseLocation, textFromDatabaseLocation } from "../config/database-location.js";
import type { Store } from "../store/store.js";
import type { Sealer } from "../tokens/seal.js";
import { configFromEnvironment } from "./environment.js";
import { usageError } from "./exit-error.js";
import { writeNote } from "./output.js";

/** What commands work on: the same files as a running relay, safe beside it. */
export interface OpenStore {
  readonly config: Config;
  readonly store: Store;
  readonly sealer: Sealer;
}

/** What a command may do beside its own work. */
export interface OpenOptions {
  /** Make key file and database when there is neither, as the first command of a new relay does; not in production. */
  readonly mayCreate?: boolean;
}

/** Opens the key file and the database of the environment, hands them to `use`, and closes them. */
export async function withStore<Result>(
  use: (open: OpenStore) => Promise<Result>,
  options?: OpenOptions,
): Promise<Result> {
  return withStoreOf(configFromEnvironment(), use, options);
}

/**
 * The same for a given configuration. A database that is missing is taken for a wrong path. Rejects with KeyFileError,
 * StoreOpenError or KeyMismatchError, or a usage error, having changed nothing.
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
  // Beside an existing database a new key would open nothing.
  const sealer = await loadSealer(keyFile, keyFileMustExist || hasDatabase);
  const store = await openStore(config, {
    onDamagedCalls: (file) => writeNote(`The records of calls were damaged. They are in ${file}, and begun anew.`),
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
    import("../tokens/seal.js"),
    import("../tokens/keyring.js"),
  ]);
  return createSealer(await loadKeyring(keyFile, { mustExist }));
}

/** What a command says that finds no database where one should be. */
export function noDatabase(database: DatabaseLocation): Error {
  const problem =
    database.kind === "sqlite"
      ? `${database.path} does not exist. Check the path`
      : `${textFromDatabaseLocation(database)} holds no store. Check the address`;
  return usageError(`RELAY_DATABASE: ${problem}, or start 'relay serve' once to make it.`);
}
