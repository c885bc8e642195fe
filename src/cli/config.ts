import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Command } from "commander";
import { type Config, configWarnings, exposureProblems, readConfig } from "../config/config.js";
import { defaultSpool, parseDatabaseLocation, textFromDatabaseLocation } from "../config/database-location.js";
import { SETTINGS } from "../config/setting-list.js";
import { textFromProblem } from "../providers/provider.js";
import type { Sealer } from "../sealing/seal.js";
import {
  addCommand,
  addGroup,
  isForOperator,
  textFields,
  usageError,
  writeJson,
  writeLine,
  writeNote,
} from "./command.js";
import { definitionProblems, loadSealer } from "./open-store.js";

/** `relay config`: the settings of the environment. */
export function addConfig(program: Command): void {
  addGroup(program, {
    usage: "config",
    about: "Show and check the settings, all RELAY_ environment variables.",
    examples: ["relay config check"],
    commands: [addConfigCheck],
  });
}

/** `relay config check`: reports every problem of the environment, or the values in effect. */
function addConfigCheck(group: Command): void {
  addCommand(group, {
    usage: "check",
    about:
      "Check the settings and the files and database they name. Prints every problem at once, or the values in effect.",
    examples: ["RELAY_DEADLINE_MS=10000 relay config check"],
    more: "Creates and changes nothing, so it can run before the service or alongside it. Exit code 2 if there is any problem.",
  }).action(checkConfig);
}

async function checkConfig(options: { readonly json?: boolean }): Promise<void> {
  const read = readConfig(process.env, process.execArgv);
  const warnings = configWarnings(read.config, process.env).map(({ setting, text }) => `${setting}: ${text}`);
  const found = await fileProblems(read.config, read.wrong, (text) => warnings.push(text));
  const problems = [...read.problems, ...exposureProblems(read.config), ...found];
  for (const warning of warnings) writeNote(`warning: ${warning}`);
  const settings = SETTINGS.map(
    ({ name, fallback }) => [name, shownSetting(name, process.env[name] || fallback)] as const,
  );
  const isOk = problems.length === 0;
  if (options.json) {
    writeJson({ ok: isOk, problems, warnings, ...(isOk ? { settings: Object.fromEntries(settings) } : undefined) });
  } else if (isOk) {
    writeLine(`ok\n${textFields(settings)}`);
  }
  if (!isOk) throw usageError(problems.join("\n"));
}

/** A setting's value to print; leaves out the password that a database url may contain. */
function shownSetting(name: string, value: string): string {
  const location = name === "RELAY_DATABASE" ? parseDatabaseLocation(value) : undefined;
  return location === undefined ? value : textFromDatabaseLocation(location);
}

/**
 * Problems of the files and the database that the settings name, each with its setting. Creates and changes nothing.
 *
 * @param wrong settings with an invalid value, which are skipped.
 * @param warn called with what is worth knowing but not a problem.
 */
async function fileProblems(
  config: Config,
  wrong: ReadonlySet<string>,
  warn: (text: string) => void,
): Promise<string[]> {
  const problems = [
    ...(await tlsProblems(config)),
    ...(await storeProblems(config, wrong.has("RELAY_DATABASE"), warn)),
    ...(wrong.has("RELAY_ADMIN_LISTEN") ? [] : await adminTokenProblems(config)),
    ...(await definitionProblems(config)).map((problem) => `RELAY_PROVIDERS: ${textFromProblem(problem)}`),
    ...(wrong.has("RELAY_DATABASE") ? [] : await spoolProblems(config)),
  ];
  return [...new Set(problems)];
}

/** Checks key file and database together: the key must open what is in the database. */
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

function sealerOrProblem(keyFile: string, problems: string[]): Promise<Sealer | undefined> {
  return valueOrProblem("RELAY_KEY_FILE", problems, () => loadSealer(keyFile, true));
}

/** Whether there is a store that needs its key file. Unknown when a database server cannot be reached. */
async function hasStoreOrProblem(
  config: Config,
  sealer: Sealer | undefined,
  { problems, warn }: { readonly problems: string[]; readonly warn: (text: string) => void },
): Promise<boolean> {
  const { hasStore, inspectStore } = await import("../store/open-store.js");
  const { database } = config;
  const found = await valueOrProblem("RELAY_DATABASE", problems, () => inspectStore(config, sealer));
  if (found === undefined) return database.kind === "sqlite";
  const { state, note } = found;
  if (note !== undefined) warn(`RELAY_DATABASE: ${textFromDatabaseLocation(database)} ${note}`);
  // In PostgreSQL `relay db migrate` makes a store in which nothing is sealed yet.
  if (state !== "missing") return (await valueOrProblem("RELAY_DATABASE", problems, () => hasStore(config))) ?? false;
  if (database.kind === "sqlite") problems.push(...(await folderProblems("RELAY_DATABASE", database.path)));
  return false;
}

/** Why a missing file could not be created, by the rules of `makeFolder()`. */
async function folderProblems(setting: string, path: string): Promise<string[]> {
  const { isDanglingLink } = await import("../store/open-database.js");
  let folder = dirname(resolve(path));
  let missing = 0;
  for (; !existsSync(folder); missing += 1) folder = dirname(folder);
  try {
    if (!(await stat(folder)).isDirectory())
      return [`${setting}: ${path} cannot be created; ${folder} is not a folder`];
    if (missing > (isAbsolute(path) ? 0 : 1))
      return [`${setting}: the folder of ${path} does not exist; create or mount it`];
    if (isDanglingLink(path)) return [`${setting}: ${path} is a link to a file that does not exist`];
    await access(folder, constants.W_OK);
    return [];
  } catch (error) {
    return [`${setting}: ${path} cannot be created in ${folder} (${(error as NodeJS.ErrnoException).code})`];
  }
}

/** A missing default folder is created next to the database, whose folder is checked already. */
async function spoolProblems({ spool, database }: Config): Promise<string[]> {
  const folder = spool ?? defaultSpool(database);
  if (existsSync(folder)) return folderProblems("RELAY_SPOOL", join(folder, "owner.spool"));
  return spool === undefined ? [] : folderProblems("RELAY_SPOOL", spool);
}

/** What `read` resolves to; undefined when it rejects with an error for the operator, which becomes a problem. */
async function valueOrProblem<Value>(
  setting: string,
  problems: string[],
  read: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!isForOperator(error)) throw error;
    problems.push(`${setting}: ${error.message}`);
    return undefined;
  }
}

/** Problems of the public port's certificate and key, alone and together. */
async function tlsProblems({ tlsCertFile, tlsKeyFile }: Config): Promise<string[]> {
  const problems: string[] = [];
  const cert = await parsed("RELAY_TLS_CERT", tlsCertFile, (pem) => new X509Certificate(pem), problems);
  const key = await parsed("RELAY_TLS_KEY", tlsKeyFile, createPrivateKey, problems);
  if (cert === undefined || key === undefined) return problems;
  return [...problems, ...pairProblems(cert, key)];
}

async function parsed<Made>(
  setting: string,
  path: string | undefined,
  parse: (pem: Buffer) => Made,
  problems: string[],
): Promise<Made | undefined> {
  if (path === undefined) return undefined;
  const pem = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    problems.push(`${setting}: ${path} cannot be read (${error.code})`);
  });
  if (pem === undefined) return undefined;
  try {
    return parse(pem);
  } catch (error) {
    // Only the code: OpenSSL's messages help nobody and may quote what was read.
    problems.push(`${setting}: ${path} cannot be used (${(error as NodeJS.ErrnoException).code ?? "not PEM"})`);
    return undefined;
  }
}

function pairProblems(cert: X509Certificate, key: KeyObject): string[] {
  const problems: string[] = [];
  if (!cert.checkPrivateKey(key)) problems.push("RELAY_TLS_KEY: is not the key of RELAY_TLS_CERT");
  if (Date.parse(cert.validTo) < Date.now()) problems.push(`RELAY_TLS_CERT: expired (${cert.validTo})`);
  return problems;
}

/** Problems of the admin token file. A file that the service would create is fine. Creates nothing. */
async function adminTokenProblems(config: Config): Promise<string[]> {
  const { adminListen, adminTokenFile, keyFileMustExist } = config;
  if (adminListen === "off" || (!keyFileMustExist && !existsSync(adminTokenFile))) return [];
  const { loadAdminTokens } = await import("../admin/admit.js");
  const problems: string[] = [];
  await valueOrProblem("RELAY_ADMIN_TOKEN_FILE", problems, () =>
    loadAdminTokens(adminTokenFile, { mustExist: true, onCreated: () => {} }),
  );
  return problems;
}
