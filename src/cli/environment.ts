import { type Config, parseConfig } from "../config.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { usageError } from "./exit-error.js";

/** The configuration of this process; a usage error with every problem when the environment is wrong. */
export function configFromEnvironment(): Config {
  const parsed = parseConfig(process.env, process.execArgv);
  if ("problems" in parsed) throw usageError(parsed.problems.join("\n"));
  return parsed.config;
}

/** The shipped and the operator's definitions. Rejects with ProviderDefinitionError. */
export async function loadCatalog({ providers, allowLoopback }: Config): Promise<ProviderCatalog> {
  const { loadProviders } = await import("../providers/catalog.js");
  return (await loadProviders({ paths: providers, allowLoopback })).catalog;
}
