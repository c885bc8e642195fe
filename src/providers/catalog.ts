import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
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

/** What was read. */
export interface LoadedProviders {
  readonly catalog: ProviderCatalog;
  /** Files of the operator's own definitions, by provider name. */
  readonly files: ReadonlyMap<string, string>;
}

/** Largest definition file, in bytes: a hundred times the largest shipped one. */
const MAX_FILE_BYTES = 256 * 1024;
const SHIPPED = fileURLToPath(new URL("./catalog/", import.meta.url));

/**
 * A catalogue of the providers; a later one replaces an earlier one of the same name. Throws ProviderDefinitionError
 * when an alias would stand for two providers.
 */
export function createCatalog(providers: readonly Provider[]): ProviderCatalog {
  const clashes = findClashes(providers);
  if (clashes.length > 0) throw new ProviderDefinitionError(clashes);
  const kept = latestByName(providers);
  const index = new Map(kept);
  for (const provider of kept.values()) {
    for (const alias of provider.aliases) index.set(alias, provider);
  }
  const all = [...kept.values()];
  return { find: (nameOrAlias) => index.get(nameOrAlias), list: () => all };
}

/**
 * Reads the shipped definitions and the operator's. Throws ProviderDefinitionError, which holds every problem of every
 * file. Reads at once: a start waits for it, and 140 files one after another take several times as long otherwise.
 */
export function loadProviders(options: LoadOptions): LoadedProviders {
  const problems: ProviderProblem[] = [];
  const providers: Provider[] = [];
  const files = new Map<string, string>();
  for (const path of [SHIPPED, ...options.paths]) {
    for (const file of definitionFiles(path, reporterOf(path, problems))) {
      const provider = readProvider(file, options, problems);
      if (provider === undefined) continue;
      providers.push(provider);
      if (path !== SHIPPED) files.set(provider.name, file);
    }
  }
  problems.push(...findClashes(providers));
  if (problems.length > 0) throw new ProviderDefinitionError(problems);
  return { catalog: createCatalog(providers), files };
}

/** Aliases that stand for two providers; named by provider, since a definition does not know its file. */
function findClashes(providers: readonly Provider[]): ProviderProblem[] {
  const kept = latestByName(providers);
  const owners = new Map([...kept.keys()].map((name) => [name, name]));
  const clashes: ProviderProblem[] = [];
  for (const { name, aliases } of kept.values()) {
    aliases.forEach((alias, at) => {
      const owner = owners.get(alias);
      owners.set(alias, name);
      if (owner === undefined) return;
      clashes.push({ file: name, field: `aliases[${at}]`, message: `${alias} already stands for ${owner}` });
    });
  }
  return clashes;
}

function latestByName(providers: readonly Provider[]): Map<string, Provider> {
  return new Map(providers.map((provider) => [provider.name, provider]));
}

/** A file is itself; a folder is its `*.json` files in the order of their names. */
function definitionFiles(path: string, report: Report): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    const names = readdirSync(path);
    const files = names.filter((name) => name.endsWith(".json")).sort();
    return files.map((name) => join(path, name));
  } catch (error) {
    report("", `cannot be read (${codeFrom(error)})`);
    return [];
  }
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
    report("", `cannot be read (${codeFrom(error)})`);
  }
  return undefined;
}

function reporterOf(path: string, problems: ProviderProblem[]): Report {
  return (field, message) => problems.push({ file: path, field, message });
}

function codeFrom(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "unknown error";
}
