import type { Command } from "commander";
import { jsonFromApplication } from "./application-text.js";
import { addCommand } from "./command.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";
import { textTable } from "./text-table.js";

/** `relay app list` */
export function addAppList(group: Command): void {
  addCommand(group, {
    usage: "list",
    about: "List the applications.",
    examples: ["relay app list", "relay app list --json"],
  }).action(listApplications);
}

async function listApplications(options: { readonly json?: boolean }): Promise<void> {
  const applications = (await withStore(({ store }) => store.applications.list())).map(jsonFromApplication);
  if (options.json) return writeJson(applications);
  const rows = applications.map(({ publicKey, name, callerAuth, state }) => [publicKey, name, callerAuth, state]);
  writeLine(textTable(["PUBLIC KEY", "NAME", "CALLER AUTH", "STATE"], rows));
}
