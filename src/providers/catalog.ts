import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { codeOf } from "../lib/secret-file.js";
import { RelayError } from "../model/errors.js";
import { type DefinitionOptions, parseProvider } from "./definition.js";
import {
  type Provider,
  type ProviderCatalog,
  ProviderDefinitionError,
  type ProviderProblem,
  type Report,
} from "./provider.js";

/** Where definitions are read from, and which are accepted. */
export interface LoadOptions extends DefinitionOptions {
  /** The operator's files and folders; later ones override earlier ones and the shipped ones of the same name. */
  readonly paths: readonly string[];
}

/** The definitions that were read. */
export interface LoadedProviders {
  readonly catalog: ProviderCatalog;
  /** Files of the operator's own definitions, by provider name. */
  readonly files: ReadonlyMap<string, string>;
}

/** A definition by name. A shipped one is parsed on first use: a relay serves a few of 700. */
interface Entry {
  readonly name: string;
  readonly aliases: readonly string[];
  /** Throws ProviderDefinitionError. */
  provider(): Provider;
}

/** Largest definition file, in bytes: a hundred times the largest shipped one. */
const MAX_FILE_BYTES = 256 * 1024;
const SHIPPED = fileURLToPath(new URL("./catalog/", import.meta.url));
/** Definitions parsed per turn of the event loop; four take about two milliseconds. */
const PARSED_AT_ONCE = 4;

/**
 * Reads the shipped definitions and the operator's; a later one replaces an earlier one of the same name. Throws
 * ProviderDefinitionError with every problem in the operator's files. Reads synchronously: startup waits for it, and
 * reading 700 files asynchronously takes several times as long.
 */
export function loadProviders(options: LoadOptions): LoadedProviders {
  const problems: ProviderProblem[] = [];
  const entries = shippedEntries();
  const files = new Map<string, string>();
  for (const path of options.paths) {
    for (const file of definitionFiles(path, reporterOf(path, problems))) {
      const provider = readProvider(file, options, problems);
      if (provider === undefined) continue;
      entries.push({ name: provider.name, aliases: provider.aliases, provider: () => provider });
      files.set(provider.name, file);
    }
  }
  problems.push(...findClashes(entries));
  if (problems.length > 0) throw new ProviderDefinitionError(problems);
  const kept = [...latestByName(entries).values()];
  return { catalog: catalogOf(kept), files };
}

function catalogOf(entries: readonly Entry[]): ProviderCatalog {
  const index = new Map(entries.map((entry) => [entry.name, entry]));
  for (const entry of entries) for (const alias of entry.aliases) index.set(alias, entry);
  let all: Promise<readonly Provider[]> | undefined;
  return {
    find: (nameOrAlias) => index.get(nameOrAlias)?.provider(),
    list: () => (all ??= parseAll(entries)),
  };
}

/** Parses a few definitions per turn of the event loop: all at once would block calls for a quarter of a second. */
async function parseAll(entries: readonly Entry[]): Promise<readonly Provider[]> {
  const all: Provider[] = [];
  for (const [at, entry] of entries.entries()) {
    if (at % PARSED_AT_ONCE === 0) await nextTurn();
    all.push(entry.provider());
  }
  return all;
}

/** The shipped definitions. The tests check that each is valid and named like its file. */
function shippedEntries(): Entry[] {
  return readdirSync(SHIPPED).flatMap((file) => {
    const text = readFileSync(join(SHIPPED, file), "utf8");
    const { name, aliases } = JSON.parse(text) as Pick<Provider, "name" | "aliases">;
    return [{ name, aliases, provider: onceParsed(text, file) }];
  });
}

function onceParsed(text: string, file: string): () => Provider {
  let known: Provider | undefined;
  return () => {
    if (known !== undefined) return known;
    const parsed = parseProvider(text, file, { allowLoopback: false });
    if ("problems" in parsed) throw new ProviderDefinitionError(parsed.problems);
    known = parsed.provider;
    return known;
  };
}

/** Finds aliases that stand for two providers. Reported by provider name, since a definition does not know its file. */
function findClashes(entries: readonly Entry[]): ProviderProblem[] {
  const kept = latestByName(entries);
  const owners = new Map([...kept.keys()].map((name) => [name, name]));
  const clashes: ProviderProblem[] = [];
  for (const { name, aliases } of kept.values()) {
    aliases.forEach((alias, at) => {
      const owner = owners.get(alias);
      owners.set(alias, name);
      if (owner === undefined) return;
      clashes.push({
        file: name,
        field: `aliases[${at}]`,
        message: `${alias} is already an alias or the name of ${owner}`,
      });
    });
  }
  return clashes;
}

function latestByName(entries: readonly Entry[]): Map<string, Entry> {
  return new Map(entries.map((entry) => [entry.name, entry]));
}

/** The file itself, or a folder's definitions. */
function definitionFiles(path: string, report: Report): readonly string[] {
  try {
    return filesInFolder(path) ?? [path];
  } catch (error) {
    report("", `cannot be read (${codeOf(error)})`);
    return [];
  }
}

/** A folder's `*.json` files in order of their names; undefined where there is no folder. Throws if it is unreadable. */
export function filesInFolder(path: string): readonly string[] | undefined {
  if (!existsSync(path) || !statSync(path).isDirectory()) return undefined;
  const names = readdirSync(path).filter((name) => name.endsWith(".json"));
  return names.sort().map((name) => join(path, name));
}

function readProvider(path: string, options: DefinitionOptions, problems: ProviderProblem[]): Provider | undefined {
  const report = reporterOf(path, problems);
  try {
    if (statSync(path).size > MAX_FILE_BYTES) {
      report("", `is larger than ${MAX_FILE_BYTES} bytes`);
      return undefined;
    }
    const parsed = parseProvider(readFileSync(path, "utf8"), path, options);
    if ("provider" in parsed) return parsed.provider;
    problems.push(...parsed.problems);
  } catch (error) {
    report("", `cannot be read (${codeOf(error)})`);
  }
  return undefined;
}

function reporterOf(path: string, problems: ProviderProblem[]): Report {
  return (field, message) => problems.push({ file: path, field, message });
}

/** Finds a provider by name or alias. Throws RelayError INVALID_PROVIDER. */
export function requireProvider({ catalog }: { readonly catalog: ProviderCatalog }, name: string): Provider {
  const provider = catalog.find(name);
  if (provider !== undefined) return provider;
  throw new RelayError("INVALID_PROVIDER", "There is no provider with this name. Check the provider's name.");
}
