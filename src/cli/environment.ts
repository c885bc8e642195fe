import { type Config, parseConfig } from "../config/config.js";
import type { ProviderCatalog } from "../providers/provider.js";
import { type ExitError, failure, usageError } from "./exit-error.js";

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

/** There is no such provider where a command looks, which need not be where the service does. */
export function noProvider(): ExitError {
  const { RELAY_PROVIDERS: paths = "" } = process.env;
  const read = paths === "" ? "is not set here" : `is ${paths} here`;
  return failure(
    `There is no provider of this name. Commands read RELAY_PROVIDERS of their own terminal, which ${read}; the service's may differ. 'relay provider list' shows those there are.`,
  );
}
