import { existsSync } from "node:fs";
import { access, constants, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Config } from "../config/config.js";
import { defaultSpool, textFromDatabaseLocation } from "../config/database-location.js";
import type { Sealer } from "../tokens/seal.js";
import { adminTokenProblems } from "./check-admin-tokens.js";
import { tlsProblems } from "./check-tls.js";
import { loadSealer } from "./open-store.js";

/**
 * What is wrong with the files and the database that the settings name, each problem with its setting. Nothing is made
 * or changed.
 *
 * @param wrong settings whose value is none, so that there is nothing to look at.
 * @param warn hears of what is no problem and worth knowing.
 */
export async function fileProblems(
  config: Config,
  wrong: ReadonlySet<string>,
  warn: (text: string) => void,
): Promise<string[]> {
  const problems = [
    ...(await tlsProblems(config)),
    ...(await storeProblems(config, wrong.has("RELAY_DATABASE"), warn)),
    ...(wrong.has("RELAY_ADMIN_LISTEN") ? [] : await adminTokenProblems(config)),
    ...(await definitionProblems(config)),
    ...(wrong.has("RELAY_DATABASE") ? [] : await spoolProblems(config)),
  ];
  return [...new Set(problems)];
}

/** Key file and database are judged together: the one must open what is in the other. */
async function storeProblems(
  config: Config,
  isDatabaseWrong: boolean,
  warn: (text: string) => void,
): Promise<string[]> {
  const { keyFile, keyFileMustExist } = config;
  const problems: string[] = [];
  const hasKeyFile = existsSync(keyFile);
  const sealer = hasKeyFile ? await sealerOrProblem(keyFile, problems) : undefined;
  const hasStore = !isDatabaseWrong && (await hasStoreOrProblem(config, sealer, { problems, warn }));
  if (hasKeyFile) return problems;
  if (keyFileMustExist || hasStore) await sealerOrProblem(keyFile, problems);
  else problems.push(...(await folderProblems("RELAY_KEY_FILE", keyFile)));
  return problems;
}

async function sealerOrProblem(keyFile: string, problems: string[]): Promise<Sealer | undefined> {
  try {
    return await loadSealer(keyFile, true);
  } catch (error) {
    problems.push(`RELAY_KEY_FILE: ${operatorText(error, "KeyFileError")}`);
    return undefined;
  }
}

/** Whether there is a store that needs its key file; a server that cannot be asked does not tell. */
async function hasStoreOrProblem(
  config: Config,
  sealer: Sealer | undefined,
  { problems, warn }: { readonly problems: string[]; readonly warn: (text: string) => void },
): Promise<boolean> {
  const { inspectStore } = await import("../store/inspect-store.js");
  const { database } = config;
  try {
    const { state, note } = await inspectStore(config, sealer);
    if (note !== undefined) warn(`RELAY_DATABASE: ${textFromDatabaseLocation(database)} ${note}`);
    const isMissing = state === "missing";
    if (isMissing && database.kind === "sqlite")
      problems.push(...(await folderProblems("RELAY_DATABASE", database.path)));
    return !isMissing;
  } catch (error) {
    problems.push(`RELAY_DATABASE: ${operatorText(error, "StoreOpenError", "KeyMismatchError")}`);
    return database.kind === "sqlite";
  }
}

/** Why a file that is not there yet could not be made, as `makeFolder()` decides. */
async function folderProblems(setting: string, path: string): Promise<string[]> {
  const { isDanglingLink } = await import("../store/open-database.js");
  let folder = dirname(resolve(path));
  let missing = 0;
  for (; !existsSync(folder); missing += 1) folder = dirname(folder);
  try {
    if (!(await stat(folder)).isDirectory()) return [`${setting}: ${path} cannot be made; ${folder} is no folder`];
    if (missing > (isAbsolute(path) ? 0 : 1))
      return [`${setting}: the folder of ${path} does not exist; make or mount it`];
    if (isDanglingLink(path)) return [`${setting}: ${path} is a link to a file that does not exist`];
    await access(folder, constants.W_OK);
    return [];
  } catch (error) {
    return [`${setting}: ${path} cannot be made in ${folder} (${(error as NodeJS.ErrnoException).code})`];
  }
}

/** A default one that is not there is made beside the database, of which the check has told. */
async function spoolProblems({ spool, database }: Config): Promise<string[]> {
  const folder = spool ?? defaultSpool(database);
  if (existsSync(folder)) return folderProblems("RELAY_SPOOL", join(folder, "owner.spool"));
  return spool === undefined ? [] : folderProblems("RELAY_SPOOL", spool);
}

async function definitionProblems({ providers, allowLoopback }: Config): Promise<string[]> {
  const { loadProviders } = await import("../providers/catalog.js");
  const { ProviderDefinitionError, textFromProblem } = await import("../providers/problem.js");
  try {
    await loadProviders({ paths: providers, allowLoopback });
    return [];
  } catch (error) {
    if (!(error instanceof ProviderDefinitionError)) throw error;
    return error.problems.map((problem) => `RELAY_PROVIDERS: ${textFromProblem(problem)}`);
  }
}

/** The message of an error that is written for the operator; every other one is a fault. */
function operatorText(error: unknown, ...names: readonly string[]): string {
  if (error instanceof Error && names.includes(error.name)) return error.message;
  throw error;
}
