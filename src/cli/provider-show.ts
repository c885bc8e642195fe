import type { Command } from "commander";
import { definitionFromProvider } from "../providers/definition-from-provider.js";
import { addCommand } from "./command.js";
import { configFromEnvironment, loadCatalog, noProvider } from "./environment.js";
import { writeJson, writeLine } from "./output.js";
import { textFromProvider } from "./provider-text.js";

/** `relay provider show` */
export function addProviderShow(group: Command): void {
  addCommand(group, {
    usage: "show <name>",
    about: "Show one provider, by name or alias. With --json it is a definition to start your own from.",
    examples: ["relay provider show github", "relay provider show github --json > providers/github.json"],
  }).action(showProvider);
}

async function showProvider(name: string, options: { readonly json?: boolean }): Promise<void> {
  const provider = (await loadCatalog(configFromEnvironment())).find(name);
  if (provider === undefined) {
    throw noProvider();
  }
  if (options.json) writeJson(definitionFromProvider(provider));
  else writeLine(textFromProvider(provider));
}
