import type { Command } from "commander";
import { definitionFromProvider } from "../providers/definition-from-provider.js";
import { addCommand } from "./command.js";
import { configFromEnvironment, loadCatalog } from "./environment.js";
import { writeJson, writeLine } from "./output.js";
import { textTable } from "./text-table.js";

/** `relay provider list` */
export function addProviderList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List the providers that calls may name.",
    examples: ["relay provider list"],
  }).action(listProviders);
}

async function listProviders(options: { readonly json?: boolean }): Promise<void> {
  const providers = [...(await loadCatalog(configFromEnvironment())).list()];
  providers.sort((a, b) => (a.name < b.name ? -1 : 1));
  const definitions = providers.map(definitionFromProvider);
  if (options.json) return writeJson(definitions);
  const rows = definitions.map((each) => [
    each.name,
    each.displayName,
    each.aliases.join(", "),
    each.apiOrigins.join(", "),
  ]);
  writeLine(textTable(["NAME", "DISPLAY NAME", "ALIASES", "API ORIGINS"], rows));
}
