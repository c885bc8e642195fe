import type { Command } from "commander";
import { jsonFromApplication, noApplication, textFromApplication } from "./application-text.js";
import { addCommand } from "./command.js";
import { withStore } from "./open-store.js";
import { writeJson, writeLine } from "./output.js";

/** `relay app show` */
export function addAppShow(group: Command): void {
  addCommand(group, {
    usage: "show <public-key>",
    about: "Show one application.",
    examples: ["relay app show PUBLIC_KEY"],
  }).action(showApplication);
}

async function showApplication(publicKey: string, options: { readonly json?: boolean }): Promise<void> {
  const application = await withStore(({ store }) => store.applications.findByPublicKey(publicKey));
  if (application === undefined) throw noApplication();
  if (options.json) writeJson(jsonFromApplication(application));
  else writeLine(textFromApplication(application));
}
